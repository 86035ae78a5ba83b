"""`python -m producer`: lands the example's data."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from producer import kafka, landing
from producer.flights import ProducerError, data_folder, read_flights, read_table, read_weather
from producer.landing import Landed, Rates

# nights have empty hours, so the next N files may take more than N hours
SPARE_HOURS = 24


def main(argv: list[str] | None = None) -> int:
    """Land what the command line asks for and return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        _land(arguments)
    except (ProducerError, OSError) as error:
        print(f"producer: {error}", file=sys.stderr)
        return 1
    return 0


def _land(arguments: argparse.Namespace) -> None:
    out: Path = arguments.out
    data = data_folder()
    rates = Rates(arguments.late_rate, arguments.duplicate_rate, arguments.out_of_order_rate, arguments.seed)
    if arguments.more:
        first, by_hour = _more(data, rates, _last_hour(arguments), arguments.more)
        end = datetime.strptime(list(by_hour)[-1], landing.HOUR_NAME).replace(tzinfo=UTC)
        weather_days = first.replace(hour=0), end.replace(hour=0) + timedelta(days=1)
    else:
        first = arguments.start
        weather_days = first, first + timedelta(days=arguments.days)
        by_hour = _hours(data, rates, *weather_days)
    if not by_hour:
        raise ProducerError(f"no flights from {arguments.start:%Y-%m-%d} on: the data is of the year 2013")
    for name in ("airports", "airlines"):
        landing.write(out / name, {f"{name}.csv": read_table(data, name)})
    weather = read_weather(data, *weather_days)
    landing.write(out / "weather", {f"{day}.csv": text for day, text in weather.items()})
    if arguments.kafka:
        new = kafka.send(arguments.kafka, arguments.topic, by_hour)
        _report(f"topic {arguments.topic}: hours", by_hour, new)
        return
    departures = {f"{hour}.json": landing.lines(landed) for hour, landed in by_hour.items()}
    new = landing.write(out / "departures", departures)
    _report(f"{out / 'departures'}: files", by_hour, new)


def _last_hour(arguments: argparse.Namespace) -> str:
    """The name of the newest hour that has landed."""
    if not arguments.kafka:
        return landing.last_hour(arguments.out / "departures")
    last = kafka.last_hour(arguments.kafka, arguments.topic)
    if last is None:
        raise ProducerError(f"nothing is in the topic {arguments.topic} yet: leave --more out first")
    return last


def _more(data: Path, rates: Rates, last: str, count: int) -> tuple[datetime, dict[str, list[Landed]]]:
    first = datetime.strptime(last, landing.HOUR_NAME).replace(tzinfo=UTC) + timedelta(hours=1)
    by_hour = _hours(data, rates, first, first + timedelta(hours=2 * count + SPARE_HOURS))
    if not by_hour:
        raise ProducerError("what has landed ends with the last flights of the data: there are no more")
    return first, dict(list(by_hour.items())[:count])


def _hours(data: Path, rates: Rates, first: datetime, end: datetime) -> dict[str, list[Landed]]:
    return landing.hours(read_flights(data, first - landing.REACH, end), rates, first, end)


def _report(what: str, by_hour: dict[str, list[Landed]], new: int) -> None:
    names = list(by_hour)
    found = landing.summarize(by_hour)
    behind = ", ".join(
        f"{number / found.events:.1%} more than {minutes} minutes" for minutes, number in found.behind.items()
    )
    print(f"{what} {names[0]} to {names[-1]}, {new} new, {len(names) - new} already there")
    duplicates = found.events - found.flights
    print(
        f"{found.events:,} events of {found.flights:,} flights: "
        f"{duplicates:,} duplicates, {found.held_back:,} held back"
    )
    print(f"behind the newest scheduled departure seen: {behind}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m producer",
        description="Lands the flights that left New York in 2013 as CloudEvents, one file per hour (UTC).",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("landing"), help="folder to land in")
    parser.add_argument("--start", type=_day, default="2013-03-01", help="first day, in UTC")
    parser.add_argument("--days", type=_number, default=14, help="how many days")
    parser.add_argument("--more", type=_number, metavar="N", help="instead: the next N hours")
    parser.add_argument("--kafka", metavar="SERVERS", help="send the events to these brokers instead (host:port)")
    parser.add_argument("--topic", default="flights.departures", help="to which topic, with --kafka")
    parser.add_argument("--seed", type=int, default=7, help="fixes what is random")
    parser.add_argument("--late-rate", type=_rate, default=0.01, help="share held back for 1 to 8 hours")
    parser.add_argument("--duplicate-rate", type=_rate, default=0.02, help="share landed twice")
    parser.add_argument("--out-of-order-rate", type=_rate, default=0.05, help="share moved within its file")
    return parser


def _day(value: str) -> datetime:
    return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)


def _number(value: str) -> int:
    if int(value) < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a number above 0")
    return int(value)


def _rate(value: str) -> float:
    if not 0 <= float(value) <= 1:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and 1")
    return float(value)


if __name__ == "__main__":
    sys.exit(main())
