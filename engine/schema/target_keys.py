"""The keys of a target, and of what it connects to."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

_KIND = ConfigKey(
    "type",
    ValueForm.TEXT,
    "`sqlite`",
    (
        "`sqlite`: a file on this machine; `jdbc`: a PostgreSQL database; `rest`: a server with the Iceberg "
        "REST protocol (Polaris, Lakekeeper, Unity Catalog, Nessie, AWS Glue, ...)"
    ),
    "type: rest",
    choices=("sqlite", "jdbc", "rest"),
)
_NAME = ConfigKey("name", ValueForm.NAME, "`lake`", "Name of the catalog in SQL", "name: warehouse")
_FOLDER = ConfigKey(
    "path",
    ValueForm.PATH,
    "`.engine/lake`; of a server `warehouse`, if that is a folder",
    (
        "`sqlite`: folder of the catalog file and the tables; `rest`: folder of the table files, if they are "
        "on this machine"
    ),
    "path: /var/lib/shop/lake",
)
_URI = ConfigKey(
    "uri",
    ValueForm.TEXT,
    "required for `jdbc`, `rest`",
    "Address of the server",
    "uri: https://catalog.example/iceberg",
)
_WAREHOUSE = ConfigKey(
    "warehouse",
    ValueForm.TEXT,
    "required for `jdbc`; of `rest` the server's",
    (
        "Place of the tables: a folder, or an address such as `s3://bucket/folder`; `rest`: the server's name "
        "for it; `sqlite`: only an object store address, in addition to `path`"
    ),
    "warehouse: /srv/warehouse",
)
_LOGIN = (
    ConfigKey(
        "credential",
        ValueForm.TEXT,
        NONE,
        "`rest`: OAuth 2 `<client id>:<client secret>`; Headrace fetches and renews tokens with it",
        "credential: \"{{ env_var('ENGINE_SECRET_CATALOG') }}\"",
    ),
    ConfigKey(
        "token",
        ValueForm.TEXT,
        NONE,
        "`rest`: token to use instead of `credential`; Headrace cannot renew it",
        "token: \"{{ env_var('ENGINE_SECRET_TOKEN') }}\"",
    ),
    ConfigKey(
        "oauth2-server-uri",
        ValueForm.TEXT,
        "the catalog's own",
        "`rest`: server that issues tokens",
        "oauth2-server-uri: https://login.example/oauth2/token",
    ),
    ConfigKey(
        "scope", ValueForm.TEXT, "`catalog`", "`rest`: scope of the requested token", "scope: PRINCIPAL_ROLE:ALL"
    ),
    ConfigKey("audience", ValueForm.TEXT, NONE, "`rest`: audience of the requested token", "audience: catalog"),
    ConfigKey("resource", ValueForm.TEXT, NONE, "`rest`: resource of the requested token", "resource: urn:catalog"),
    ConfigKey("prefix", ValueForm.TEXT, "the server's", "`rest`: first part of the server's paths", "prefix: main"),
)
_IO = ConfigKey(
    "io-impl", ValueForm.TEXT, "the kind's", "Class with which Spark reads and writes files",
    "io-impl: org.apache.iceberg.aws.s3.S3FileIO",
)  # fmt: skip


def _needed(key: ConfigKey) -> ConfigKey:
    return replace(key, default=REQUIRED)


def _catalog(*keys: ConfigKey) -> ConfigBlock:
    text = (
        "The Iceberg catalog, used by Spark and PyIceberg. For further keys of a server, see Iceberg's "
        "documentation: `header.<name>`, `rest.<key>`, `token-<key>`, `jdbc.<key>` (`jdbc.user`, `jdbc.password`), "
        "`s3.<key>`, `client.<key>`, `table-default.<property>`. See [catalogs](../catalogs.md)."
    )
    return ConfigBlock("catalog", "catalog", "catalog", text, (_KIND, _NAME, *keys), open=True)


CATALOG: Final = _catalog(_FOLDER, _URI, _WAREHOUSE, *_LOGIN, _IO)
CATALOG_TYPES: Final = {
    "sqlite": _catalog(_FOLDER, _WAREHOUSE),
    "jdbc": _catalog(_needed(_URI), _needed(_WAREHOUSE), _IO),
    "rest": _catalog(_FOLDER, _needed(_URI), _WAREHOUSE, *_LOGIN, _IO),
}
_ANY: Final = ("s3.", "client.", "table-default.", "table-override.", "gcs.", "adls.")
CATALOG_PREFIXES: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": (),
    "jdbc": ("jdbc.", *_ANY),
    "rest": ("header.", "rest.", "token-", *_ANY),
}

SPARK: Final = ConfigBlock(
    "spark",
    "spark",
    "spark",
    "The Spark session.",
    (
        ConfigKey(
            "master",
            ValueForm.TEXT,
            "`local[*]`",
            "Spark's master URL: `local[4]`, `spark://host:7077`, `yarn`, `k8s://https://host:6443`",
            'master: "local[2]"',
        ),
        ConfigKey(
            "shared_folders",
            ValueForm.BOOLEAN,
            "`false`",
            "`true`: every machine of the cluster has the folders of this machine at the same paths",
            "shared_folders: true",
        ),
        ConfigKey("driver_memory", ValueForm.TEXT, "Spark's, 1g", "Heap size of the driver", "driver_memory: 4g"),
        ConfigKey(
            "conf",
            ValueForm.MAPPING,
            NONE,
            "Settings of the session, except settings that every model relies on, such as the time zone",
            "conf: {spark.sql.shuffle.partitions: 8}",
        ),
        ConfigKey(
            "packages",
            ValueForm.TEXTS,
            NONE,
            "Maven coordinates; set `spark.jars` in `conf` instead",
            "packages: [org.postgresql:postgresql:42.7.4]",
            later=True,
        ),
    ),
)

OBJECT_STORE: Final = ConfigBlock(
    "s3",
    "s3",
    "s3",
    (
        "The object store: S3 or an S3-compatible store. Spark and Python use this block for the tables, the "
        "state and the files of sources. The AWS SDK finds the settings that you leave out, so `s3: {}` uses "
        "the role of the machine. See [object storage](../how-to/object-storage.md)."
    ),
    (
        ConfigKey(
            "endpoint",
            ValueForm.TEXT,
            "AWS's own",
            "Address of a store other than AWS",
            "endpoint: https://minio.example:9000",
        ),
        ConfigKey("region", ValueForm.TEXT, "the AWS SDK's", "Region of the buckets", "region: eu-central-1"),
        ConfigKey(
            "access_key_id",
            ValueForm.TEXT,
            "the AWS SDK's chain: environment, profile, role",
            "Access key id; needs `secret_access_key`",
            "access_key_id: \"{{ env_var('ENGINE_SECRET_S3_ID') }}\"",
        ),
        ConfigKey(
            "secret_access_key",
            ValueForm.TEXT,
            NONE,
            "Secret of the access key; needs `access_key_id`",
            "secret_access_key: \"{{ env_var('ENGINE_SECRET_S3_KEY') }}\"",
        ),
        ConfigKey(
            "session_token",
            ValueForm.TEXT,
            NONE,
            "Token of a temporary login; Headrace cannot renew it",
            "session_token: \"{{ env_var('ENGINE_SECRET_S3_TOKEN') }}\"",
        ),
        ConfigKey(
            "path_style_access",
            ValueForm.BOOLEAN,
            "`false`",
            "Put the bucket into the path instead of the host name; most stores other than AWS need `true`",
            "path_style_access: true",
        ),
    ),
)

SECURITY: Final = ConfigBlock(
    "security",
    "security",
    "connections: security",
    "Encryption and login of a Kafka connection.",
    (
        ConfigKey(
            "protocol",
            ValueForm.TEXT,
            REQUIRED,
            "Encryption and login",
            "protocol: SASL_SSL",
            choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        ),
        ConfigKey(
            "mechanism",
            ValueForm.TEXT,
            NONE,
            "With SASL: login mechanism",
            "mechanism: SCRAM-SHA-512",
            choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        ),
        ConfigKey("username", ValueForm.TEXT, NONE, "With SASL: user name", "username: shop"),
        ConfigKey(
            "password",
            ValueForm.TEXT,
            NONE,
            "With SASL: password",
            "password: \"{{ env_var('ENGINE_SECRET_KAFKA') }}\"",
        ),
        ConfigKey(
            "ca",
            ValueForm.TEXT,
            "Java's",
            "PEM text of the certificates that sign the brokers' certificates",
            "ca: \"{{ env_var('KAFKA_CA') }}\"",
        ),
        ConfigKey(
            "certificate",
            ValueForm.TEXT,
            NONE,
            "PEM text of the client certificate",
            "certificate: \"{{ env_var('KAFKA_CERTIFICATE') }}\"",
        ),
        ConfigKey(
            "key",
            ValueForm.TEXT,
            NONE,
            "PEM text of the client key",
            "key: \"{{ env_var('ENGINE_SECRET_KAFKA_KEY') }}\"",
        ),
        ConfigKey(
            "key_password",
            ValueForm.TEXT,
            NONE,
            "Password of the client key",
            "key_password: \"{{ env_var('ENGINE_SECRET_KEY_PASSWORD') }}\"",
        ),
    ),
)

CONNECTION: Final = ConfigBlock(
    "connection",
    "a connection",
    "connections",
    (
        "Kafka brokers, a database, or options of a Spark reader with credentials, by name. Headrace renders a "
        "connection when it reads a source or delivers a sink."
    ),
    (
        ConfigKey(
            "bootstrap_servers",
            ValueForm.TEXTS,
            "required for Kafka",
            "`host:port` of one or more brokers, separated by commas or as a list",
            "bootstrap_servers: localhost:9092",
        ),
        ConfigKey(
            "security",
            ValueForm.BLOCK,
            "no encryption, no login",
            "Encryption and login of Kafka",
            "security: {protocol: SSL}",
            block="security",
        ),
        ConfigKey(
            "uri",
            ValueForm.TEXT,
            "required for PostgreSQL",
            "Address of a PostgreSQL database that sinks deliver to",
            "uri: jdbc:postgresql://crm.example:5432/crm",
        ),
        ConfigKey("username", ValueForm.TEXT, NONE, "User of the database", "username: headrace"),
        ConfigKey(
            "password",
            ValueForm.TEXT,
            NONE,
            "Password of the database's user",
            "password: \"{{ env_var('ENGINE_SECRET_CRM') }}\"",
        ),
        ConfigKey(
            "options",
            ValueForm.MAPPING,
            NONE,
            "Kafka: client options as `consumer.<name>`; files and Spark readers: options of the reader",
            "options: {consumer.client.rack: a}",
        ),
    ),
)

REGISTRY: Final = ConfigBlock(
    "registry",
    "a schema registry",
    "schema_registries",
    "Schema registries with the Confluent interface, by name.",
    (
        ConfigKey(
            "url", ValueForm.TEXT, REQUIRED, "Root address of the registry's API", "url: https://registry.example:8081"
        ),
        ConfigKey(
            "auth",
            ValueForm.TREE,
            NONE,
            "`{username: .., password: ..}`, `{token: ..}` or `user:password`",
            "auth: {token: \"{{ env_var('ENGINE_SECRET_REGISTRY') }}\"}",
        ),
        ConfigKey(
            "ca",
            ValueForm.TEXT,
            "the machine's",
            "PEM text of the certificates that sign the registry's certificate",
            "ca: \"{{ env_var('REGISTRY_CA') }}\"",
        ),
        ConfigKey("timeout", ValueForm.DURATION, "20 seconds", "Maximum time for one request", "timeout: 5 seconds"),
    ),
)

_TYPE = ConfigKey(
    "type", ValueForm.TEXT, REQUIRED, "Destination of events", "type: file", choices=("file", "http")
)  # fmt: skip
_NAMESPACE = ConfigKey("namespace", ValueForm.TEXT, "the project's name", "Namespace of the jobs", "namespace: shop")
_FILE = ConfigKey(
    "path", ValueForm.PATH, "required for `file`", "`file`: file of the project, with one JSON object per line",
    "path: events.jsonl",
)  # fmt: skip
_HTTP = (
    ConfigKey(
        "url",
        ValueForm.TEXT,
        "required for `http`",
        "`http`: server that receives events at `<url>/api/v1/lineage`",
        "url: https://lineage.example",
    ),
    ConfigKey(
        "api_key",
        ValueForm.TEXT,
        NONE,
        "`http`: value for the header `Authorization`",
        "api_key: \"{{ env_var('ENGINE_SECRET_LINEAGE') }}\"",
    ),
    ConfigKey(
        "timeout", ValueForm.DURATION, "5 seconds", "`http`: maximum time for one request", "timeout: 10 seconds"
    ),
)


def _openlineage(*keys: ConfigKey) -> ConfigBlock:
    text = "Run events for a lineage backend, or in a file."
    return ConfigBlock("openlineage", "openlineage", "openlineage", text, (_TYPE, *keys, _NAMESPACE))


OPENLINEAGE: Final = _openlineage(_FILE, *_HTTP)
OPENLINEAGE_TYPES: Final = {"file": _openlineage(_FILE), "http": _openlineage(*_HTTP)}

ALERTS: Final = ConfigBlock(
    "alerts",
    "alerts",
    "alerts",
    ("Alerts about models under `engine start`. Headrace sends each alert once when it starts and once when it ends."),
    (
        ConfigKey(
            "url",
            ValueForm.TEXT,
            NONE,
            "Webhook that receives alerts as JSON (POST)",
            "url: https://hooks.example/shop",
        ),
        ConfigKey(
            "token",
            ValueForm.TEXT,
            NONE,
            "Token for the webhook, sent as `Authorization: Bearer`",
            "token: \"{{ env_var('ENGINE_SECRET_HOOK') }}\"",
        ),
        ConfigKey(
            "command",
            ValueForm.TEXTS,
            NONE,
            "Program and arguments; the program gets the alert as JSON on standard input",
            "command: [python3, notify.py]",
        ),
        ConfigKey("timeout", ValueForm.DURATION, "10 seconds", "Maximum time for one attempt", "timeout: 20 seconds"),
        ConfigKey(
            "lag",
            ValueForm.DURATION,
            "no alert",
            "Alert if the input of a model is unread for longer than this",
            "lag: 10 minutes",
        ),
        ConfigKey(
            "bad_records",
            ValueForm.COUNT,
            "no alert",
            "Alert if a model reads more bad records than this within ten minutes",
            "bad_records: 100",
        ),
        ConfigKey(
            "restarts",
            ValueForm.COUNT,
            "no alert",
            "Alert if more consecutive runs of a model fail than this",
            "restarts: 5",
        ),
    ),
)

TARGET: Final = ConfigBlock(
    "target",
    "a target",
    "targets",
    "A place to build into. Values may be Jinja with `env_var()`. Headrace renders only the target in use.",
    (
        ConfigKey(
            "schema",
            ValueForm.TEXT,
            "the project's name; required with several targets",
            "Namespace of the tables; separate levels with dots",
            "schema: shop_dev",
        ),
        ConfigKey(
            "catalog",
            ValueForm.BLOCK,
            "`{type: sqlite, name: lake, path: .engine/lake}`",
            "Iceberg catalog",
            "catalog: {type: sqlite, name: lake, path: /var/lib/shop/lake}",
            block="catalog",
        ),
        ConfigKey(
            "state",
            ValueForm.PATH,
            "`.engine/state`",
            (
                "Folder for checkpoints, state files and locks, or `s3a://bucket/folder`; back it up together with the "
                "tables"
            ),
            "state: /var/lib/shop/state",
        ),
        ConfigKey("s3", ValueForm.BLOCK, NONE, "Object store", "s3: {region: eu-central-1}", block="s3"),
        ConfigKey("spark", ValueForm.BLOCK, NONE, "Spark session", 'spark: {master: "local[4]"}', block="spark"),
        ConfigKey(
            "connections",
            ValueForm.BY_NAME,
            NONE,
            "Kafka brokers and credentials of sources, by name",
            "connections: {main: {bootstrap_servers: localhost:9092}}",
            block="connection",
        ),
        ConfigKey(
            "schema_registries",
            ValueForm.BY_NAME,
            NONE,
            "Schema registries, by name",
            "schema_registries: {main: {url: https://registry.example}}",
            block="registry",
        ),
        ConfigKey(
            "openlineage",
            ValueForm.BLOCK,
            NONE,
            "Destination of run events",
            "openlineage: {type: file, path: events.jsonl}",
            block="openlineage",
        ),
        ConfigKey(
            "alerts",
            ValueForm.BLOCK,
            NONE,
            "Destination and conditions of alerts under `engine start`",
            'alerts: {url: "https://hooks.example/shop", lag: 10 minutes}',
            block="alerts",
        ),
        ConfigKey(
            "stalled_after",
            ValueForm.DURATION,
            "5 minutes",
            (
                "Time without progress after which `engine start` reports a model with unread input as stalled, in the "
                "status, the metrics and alerts; a model's own setting wins"
            ),
            "stalled_after: 10 minutes",
        ),
        ConfigKey(
            "require_replayable",
            ValueForm.BOOLEAN,
            "`false`",
            "`true`: reject sources whose records cannot be re-read",
            "require_replayable: true",
        ),
        ConfigKey(
            "allow_after_reading",
            ValueForm.TEXTS,
            NONE,
            "Absolute paths of folders outside the project in which `after_reading` may archive or delete files",
            "allow_after_reading: [/data/landing]",
        ),
    ),
)
