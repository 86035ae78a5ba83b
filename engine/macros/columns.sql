{#- Macros for columns. They give SQL that is the same in every run; none of them needs to know the columns. -#}

{#- All columns but some: star(except=['raw']), star(from='e', except=['raw']). -#}
{%- macro star(from='', except=[]) -%}
{{ _of(from) }}*{{ _except(except) }}
{%- endmacro %}

{#- All columns, some of them with another name: rename({'old': 'new'}). The renamed ones stand last. -#}
{%- macro rename(columns, from='') -%}
{{ _of(from) }}*{{ _except(columns) }}
{%- for old, new in columns.items() %}, {{ _of(from) }}{{ old }} as {{ new }}{% endfor %}
{%- endmacro %}

{#- All columns, some of them with another type: set_type({'amount': 'double'}). The cast ones stand last. -#}
{%- macro set_type(columns, from='', safe=false) -%}
{{ _of(from) }}*{{ _except(columns) }}
{%- for name, type in columns.items() %}, {{ 'try_' if safe }}cast({{ _of(from) }}{{ name }} as {{ type }}) as {{ name }}
{%- endfor %}
{%- endmacro %}

{#- Fields of a struct as columns: flatten('data', ['id', 'item.price'], prefix='data_'). -#}
{%- macro flatten(column, fields=[], prefix='') -%}
{%- if not fields and prefix -%}
{{ exceptions.raise_compiler_error("flatten() with a prefix needs the names of the fields: flatten('data', ['id'], prefix='data_')") }}
{%- elif not fields -%}
{{ column }}.*
{%- endif -%}
{%- for field in _list(fields) -%}
{{ column }}.{{ field }} as {{ prefix }}{{ field | replace('`', '') | replace('.', '_') }}{{ ', ' if not loop.last }}
{%- endfor %}
{%- endmacro %}

{#- One key of several columns. Each value goes in with its length and NULL as itself, so no two rows share a key by chance of writing. -#}
{%- macro surrogate_key(columns) -%}
{%- if not columns -%}
{{ exceptions.raise_compiler_error("surrogate_key() needs columns: surrogate_key(['id', 'name'])") }}
{%- endif -%}
md5(concat(
{%- for column in _list(columns) -%}
coalesce(concat(length(cast({{ column }} as string)), ':', cast({{ column }} as string)), '-'){{ ', ' if not loop.last }}
{%- endfor -%}
))
{%- endmacro %}

{#- A type that may not fit: what cannot be cast is NULL. -#}
{%- macro safe_cast(expression, type) -%}
try_cast({{ expression }} as {{ type }})
{%- endmacro %}

{#- JSON in a column as a struct: parse_json('payload', 'id int, name string'). What is no such JSON stands in its field _malformed. -#}
{%- macro parse_json(column, schema, on_error='keep') -%}
{%- set text = schema | replace("'", "\\'") -%}
{%- if on_error == 'keep' and schema.strip().lower().startswith(('struct<', 'array<', 'map<')) -%}
{{ exceptions.raise_compiler_error("parse_json() takes a list of fields, such as 'id int, name string'; for arrays and maps say on_error='fail'") }}
{%- elif on_error == 'keep' -%}
from_json({{ column }}, '{{ text }}, _malformed string', map('columnNameOfCorruptRecord', '_malformed'))
{%- elif on_error == 'fail' -%}
from_json({{ column }}, '{{ text }}', map('mode', 'FAILFAST'))
{%- else -%}
{{ exceptions.raise_compiler_error("parse_json() has on_error='keep' and on_error='fail', not '" ~ on_error ~ "'") }}
{%- endif -%}
{%- endmacro %}

{#- A number of seconds, millis or micros since 1970 as a timestamp. -#}
{%- macro epoch_to_timestamp(column, unit='seconds') -%}
{%- if unit not in ['seconds', 'millis', 'micros'] -%}
{{ exceptions.raise_compiler_error("epoch_to_timestamp() counts 'seconds', 'millis' or 'micros', not '" ~ unit ~ "'") }}
{%- endif -%}
timestamp_{{ unit }}({{ column }})
{%- endmacro %}

{#- A text as a timestamp in the first format that fits; NULL if none does. -#}
{%- macro any_timestamp(column, formats) -%}
{%- if not formats -%}
{{ exceptions.raise_compiler_error("any_timestamp() needs formats: any_timestamp('at', ['yyyy-MM-dd', 'dd.MM.yyyy'])") }}
{%- endif -%}
coalesce(
{%- for format in _list(formats) -%}
try_to_timestamp({{ column }}, '{{ format | replace("'", "\\'") }}'){{ ', ' if not loop.last }}
{%- endfor -%}
)
{%- endmacro %}

{%- macro _of(from) -%}
{{ from ~ '.' if from }}
{%- endmacro %}

{%- macro _except(columns) -%}
{%- if columns %} except ({{ _list(columns) | join(', ') }}){% endif -%}
{%- endmacro %}

{%- macro _list(values) -%}
{{ return([values] if values is string else values | list) }}
{%- endmacro %}
