"""`python -m producer`: lands the example's data."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from producer import kafka, landing
from producer.flights import ProducerError, data_folder, read_flights, read_table, read_weather
from producer.landing import Landed, Rates

ByHour = dict[str, list[Landed]]
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
        first, end, departures, arrivals = _more(data, rates, _last_hour(arguments), arguments.more)
        weather_days = first.replace(hour=0), end.replace(hour=0) + timedelta(days=1)
    else:
        first = arguments.start
        weather_days = first, first + timedelta(days=arguments.days)
        departures, arrivals = _hours(data, rates, *weather_days)
    if not departures:
        raise ProducerError(f"no flights from {arguments.start:%Y-%m-%d} on: the data is of the year 2013")
    for name in ("airports", "airlines"):
        landing.write(out / name, {f"{name}.csv": read_table(data, name)})
    weather = read_weather(data, *weather_days)
    landing.write(out / "weather", {f"{day}.csv": text for day, text in weather.items()})
    # The next call begins behind the last departures: whoever is killed between the two goes on with the same hours.
    for what, by_hour in (("arrivals", arrivals), ("departures", departures)):
        if arguments.kafka:
            topic = f"{arguments.topics}.{what}"
            _report(f"topic {topic}: hours", by_hour, kafka.send(arguments.kafka, topic, by_hour))
        else:
            files = {f"{hour}.json": landing.lines(landed) for hour, landed in by_hour.items()}
            _report(f"{out / what}: files", by_hour, landing.write(out / what, files))
    _summary(departures)


def _last_hour(arguments: argparse.Namespace) -> str:
    """The name of the newest hour that has landed."""
    if not arguments.kafka:
        return landing.last_hour(arguments.out / "departures")
    topic = f"{arguments.topics}.departures"
    last = kafka.last_hour(arguments.kafka, topic)
    if last is None:
        raise ProducerError(f"nothing is in the topic {topic} yet: leave --more out first")
    return last


def _more(data: Path, rates: Rates, last: str, count: int) -> tuple[datetime, datetime, ByHour, ByHour]:
    first = _hour(last) + timedelta(hours=1)
    departures, arrivals = _hours(data, rates, first, first + timedelta(hours=2 * count + SPARE_HOURS))
    if not departures:
        raise ProducerError("what has landed ends with the last flights of the data: there are no more")
    departures = dict(list(departures.items())[:count])
    end = max(departures)
    return first, _hour(end), departures, {name: landed for name, landed in arrivals.items() if name <= end}


def _hour(name: str) -> datetime:
    return datetime.strptime(name, landing.HOUR_NAME).replace(tzinfo=UTC)


def _hours(data: Path, rates: Rates, first: datetime, end: datetime) -> tuple[ByHour, ByHour]:
    """What lands: of departures, and of landings, which nobody tells twice."""
    departures, arrivals = read_flights(data, first - landing.REACH, end)
    once = replace(rates, duplicate=0)
    return landing.hours(departures, rates, first, end), landing.hours(arrivals, once, first, end)


def _report(what: str, by_hour: ByHour, new: int) -> None:
    names = list(by_hour)
    if names:
        print(f"{what} {names[0]} to {names[-1]}, {new} new, {len(names) - new} already there")


def _summary(by_hour: ByHour) -> None:
    found = landing.summarize(by_hour)
    behind = ", ".join(
        f"{number / found.events:.1%} more than {minutes} minutes" for minutes, number in found.behind.items()
    )
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
    parser.add_argument("--topics", default="flights", help="what the topics' names begin with, with --kafka")
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
