/*---
description: >-
  Times in which an airport sent flights off with long delays: one begins with the first of them and ends when none
  follows for half an hour. A flight that arrives late can join two of them.
streams:
  flights: {watermark: departed_at delay 9 hours}       # events are held back for up to 8 hours
windows:
  wave: session(departed_at, 30 minutes)
columns:
  origin: {description: IATA code., tests: [{accepted_values: {values: [EWR, JFK, LGA]}}]}
  began_at: {description: Departure of the first flight., tests: [not_null]}
  ended_at: Half an hour after the last one.
  departures: Flights with a long delay.
  longest_delay: {description: Minutes., tests: [{expression: {expression: ">= {{ var('long_delay_minutes') }}"}}]}
---*/
select
    origin,
    wave.start as began_at,
    wave.end as ended_at,
    count(*) as departures,
    max(departure_delay) as longest_delay
from {{ ref('flights') }}
where departure_delay >= {{ var('long_delay_minutes') }}
group by wave, origin
