"""The keys of a target, and of what it connects to."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

_KIND = ConfigKey(
    "type",
    ValueForm.TEXT,
    "`sqlite`",
    "`sqlite`: a file of this machine; `jdbc`: a PostgreSQL database; `rest`: a server of Iceberg's REST protocol "
    "(Polaris, Lakekeeper, Unity Catalog, Nessie, AWS Glue, ..)",
    "type: rest",
    choices=("sqlite", "jdbc", "rest"),
)
_NAME = ConfigKey("name", ValueForm.NAME, "`lake`", "name of the catalog in SQL", "name: warehouse")
_FOLDER = ConfigKey(
    "path",
    ValueForm.PATH,
    "`.engine/lake`; of a server `warehouse`, if that is a folder",
    "`sqlite`: the folder of the catalog's file and of the tables; `rest`: the folder of the tables' files, "
    "where they are on this machine",
    "path: /var/lib/shop/lake",
)
_URI = ConfigKey(
    "uri",
    ValueForm.TEXT,
    "required for `jdbc`, `rest`",
    "address of the server",
    "uri: https://catalog.example/iceberg",
)
_WAREHOUSE = ConfigKey(
    "warehouse",
    ValueForm.TEXT,
    "required for `jdbc`; of `rest` the server's",
    "where tables are stored: a folder or an address such as `s3://bucket/folder`; `rest`: the server's name for it; "
    "`sqlite`: only an address of an object store, beside `path`",
    "warehouse: /srv/warehouse",
)
_LOGIN = (
    ConfigKey(
        "credential",
        ValueForm.TEXT,
        NONE,
        "`rest`: `<client id>:<client secret>` of OAuth 2; tokens are fetched and renewed with it",
        "credential: \"{{ env_var('ENGINE_SECRET_CATALOG') }}\"",
    ),
    ConfigKey(
        "token",
        ValueForm.TEXT,
        NONE,
        "`rest`: a token in place of `credential`; it is not renewed",
        "token: \"{{ env_var('ENGINE_SECRET_TOKEN') }}\"",
    ),
    ConfigKey(
        "oauth2-server-uri",
        ValueForm.TEXT,
        "the catalog's own",
        "`rest`: where tokens are fetched",
        "oauth2-server-uri: https://login.example/oauth2/token",
    ),
    ConfigKey("scope", ValueForm.TEXT, "`catalog`", "`rest`: what a token is asked for", "scope: PRINCIPAL_ROLE:ALL"),
    ConfigKey("audience", ValueForm.TEXT, NONE, "`rest`: sent when a token is fetched", "audience: catalog"),
    ConfigKey("resource", ValueForm.TEXT, NONE, "`rest`: sent when a token is fetched", "resource: urn:catalog"),
    ConfigKey("prefix", ValueForm.TEXT, "the server's", "`rest`: first part of its paths", "prefix: main"),
)
_IO = ConfigKey(
    "io-impl", ValueForm.TEXT, "the kind's", "Spark: the class that reads and writes files",
    "io-impl: org.apache.iceberg.aws.s3.S3FileIO",
)  # fmt: skip


def _needed(key: ConfigKey) -> ConfigKey:
    return replace(key, default=REQUIRED)


def _catalog(*keys: ConfigKey) -> ConfigBlock:
    text = (
        "The Iceberg catalog, used by Spark and PyIceberg. Further keys of a server are those of Iceberg's "
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
            "folders of this machine are the same ones, at the same paths, on every machine of the cluster",
            "shared_folders: true",
        ),
        ConfigKey("driver_memory", ValueForm.TEXT, "Spark's, 1g", "heap of the driver", "driver_memory: 4g"),
        ConfigKey(
            "conf",
            ValueForm.MAPPING,
            NONE,
            "settings of the session; those that every model relies on, such as the time zone, are rejected",
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
    "The object store: S3, or one with its interface. One block for the tables, the state and the files of sources, in "
    "Spark and in Python. What is left out is found by the AWS SDK; `s3: {}` therefore uses the role of the machine. "
    "See [object storage](../how-to/object-storage.md).",
    (
        ConfigKey(
            "endpoint",
            ValueForm.TEXT,
            "AWS's own",
            "address of a store that is not AWS's",
            "endpoint: https://minio.example:9000",
        ),
        ConfigKey("region", ValueForm.TEXT, "the AWS SDK's", "region of the buckets", "region: eu-central-1"),
        ConfigKey(
            "access_key_id",
            ValueForm.TEXT,
            "the AWS SDK's chain: environment, profile, role",
            "the login; needs `secret_access_key`",
            "access_key_id: \"{{ env_var('ENGINE_SECRET_S3_ID') }}\"",
        ),
        ConfigKey(
            "secret_access_key",
            ValueForm.TEXT,
            NONE,
            "the login's secret; needs `access_key_id`",
            "secret_access_key: \"{{ env_var('ENGINE_SECRET_S3_KEY') }}\"",
        ),
        ConfigKey(
            "session_token",
            ValueForm.TEXT,
            NONE,
            "of a temporary login; it is not renewed",
            "session_token: \"{{ env_var('ENGINE_SECRET_S3_TOKEN') }}\"",
        ),
        ConfigKey(
            "path_style_access",
            ValueForm.BOOLEAN,
            "`false`",
            "address buckets in the path, not in the host name; most stores other than AWS's need `true`",
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
            "encryption and login",
            "protocol: SASL_SSL",
            choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        ),
        ConfigKey(
            "mechanism",
            ValueForm.TEXT,
            NONE,
            "how the login is checked, with SASL",
            "mechanism: SCRAM-SHA-512",
            choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        ),
        ConfigKey("username", ValueForm.TEXT, NONE, "user of the login, with SASL", "username: shop"),
        ConfigKey(
            "password",
            ValueForm.TEXT,
            NONE,
            "password of the login, with SASL",
            "password: \"{{ env_var('ENGINE_SECRET_KAFKA') }}\"",
        ),
        ConfigKey(
            "ca",
            ValueForm.TEXT,
            "those of Java",
            "PEM text: the certificates that sign the brokers'",
            "ca: \"{{ env_var('KAFKA_CA') }}\"",
        ),
        ConfigKey(
            "certificate",
            ValueForm.TEXT,
            NONE,
            "PEM text: the client's certificate",
            "certificate: \"{{ env_var('KAFKA_CERTIFICATE') }}\"",
        ),
        ConfigKey(
            "key",
            ValueForm.TEXT,
            NONE,
            "PEM text: the client's key",
            "key: \"{{ env_var('ENGINE_SECRET_KAFKA_KEY') }}\"",
        ),
        ConfigKey(
            "key_password",
            ValueForm.TEXT,
            NONE,
            "password of the client's key",
            "key_password: \"{{ env_var('ENGINE_SECRET_KEY_PASSWORD') }}\"",
        ),
    ),
)

CONNECTION: Final = ConfigBlock(
    "connection",
    "a connection",
    "connections",
    "Brokers, or options of a Spark reader with credentials, by name. They are rendered when a source is read.",
    (
        ConfigKey(
            "bootstrap_servers",
            ValueForm.TEXTS,
            "required for Kafka",
            "`host:port` of one or more brokers, with commas or as a list",
            "bootstrap_servers: localhost:9092",
        ),
        ConfigKey(
            "security",
            ValueForm.BLOCK,
            "no encryption, no login",
            "encryption and login of Kafka",
            "security: {protocol: SSL}",
            block="security",
        ),
        ConfigKey(
            "options",
            ValueForm.MAPPING,
            NONE,
            "Kafka: options of the client as `consumer.<name>`; files and Spark readers: options of the reader",
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
        ConfigKey("url", ValueForm.TEXT, REQUIRED, "where its interface begins", "url: https://registry.example:8081"),
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
            "those of the machine",
            "PEM text: the certificates that sign the registry's",
            "ca: \"{{ env_var('REGISTRY_CA') }}\"",
        ),
        ConfigKey("timeout", ValueForm.DURATION, "20 seconds", "how long one question may take", "timeout: 5 seconds"),
    ),
)

_TYPE = ConfigKey(
    "type", ValueForm.TEXT, REQUIRED, "where events are sent", "type: file", choices=("file", "http")
)  # fmt: skip
_NAMESPACE = ConfigKey("namespace", ValueForm.TEXT, "the project's name", "namespace of the jobs", "namespace: shop")
_FILE = ConfigKey(
    "path", ValueForm.PATH, "required for `file`", "`file`: a file of the project, one JSON object a line",
    "path: events.jsonl",
)  # fmt: skip
_HTTP = (
    ConfigKey(
        "url",
        ValueForm.TEXT,
        "required for `http`",
        "`http`: events are posted to `<url>/api/v1/lineage`",
        "url: https://lineage.example",
    ),
    ConfigKey(
        "api_key",
        ValueForm.TEXT,
        NONE,
        "`http`: sent in the header `Authorization`",
        "api_key: \"{{ env_var('ENGINE_SECRET_LINEAGE') }}\"",
    ),
    ConfigKey("timeout", ValueForm.DURATION, "5 seconds", "`http`: how long a request may take", "timeout: 10 seconds"),
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
    "Alerts of models that are kept running: each is sent once, and once when it is over.",
    (
        ConfigKey(
            "url", ValueForm.TEXT, NONE, "a webhook: alerts are posted to it as JSON", "url: https://hooks.example/shop"
        ),
        ConfigKey(
            "token",
            ValueForm.TEXT,
            NONE,
            "sent to the webhook as `Authorization: Bearer`",
            "token: \"{{ env_var('ENGINE_SECRET_HOOK') }}\"",
        ),
        ConfigKey(
            "command",
            ValueForm.TEXTS,
            NONE,
            "a program and its arguments; it gets the alert as JSON on standard input",
            "command: [python3, notify.py]",
        ),
        ConfigKey("timeout", ValueForm.DURATION, "10 seconds", "how long one attempt may take", "timeout: 20 seconds"),
        ConfigKey(
            "lag", ValueForm.DURATION, "no alert", "input of a model is unread for longer than that", "lag: 10 minutes"
        ),
        ConfigKey(
            "bad_records",
            ValueForm.COUNT,
            "no alert",
            "a model reads more bad records than that within ten minutes",
            "bad_records: 100",
        ),
        ConfigKey(
            "restarts",
            ValueForm.COUNT,
            "no alert",
            "more turns of a model than that fail one after the other",
            "restarts: 5",
        ),
    ),
)

TARGET: Final = ConfigBlock(
    "target",
    "a target",
    "targets",
    "A place to build into. Values may be Jinja with `env_var()`; only the target in use is rendered.",
    (
        ConfigKey(
            "schema",
            ValueForm.TEXT,
            "the project's name; required with several targets",
            "the namespace of the tables; levels with dots between them",
            "schema: shop_dev",
        ),
        ConfigKey(
            "catalog",
            ValueForm.BLOCK,
            "`{type: sqlite, name: lake, path: .engine/lake}`",
            "the Iceberg catalog",
            "catalog: {type: sqlite, name: lake, path: /var/lib/shop/lake}",
            block="catalog",
        ),
        ConfigKey(
            "state",
            ValueForm.PATH,
            "`.engine/state`",
            "the folder of checkpoints, facts and locks, or `s3a://bucket/folder`; back it up with the tables",
            "state: /var/lib/shop/state",
        ),
        ConfigKey("s3", ValueForm.BLOCK, NONE, "the object store", "s3: {region: eu-central-1}", block="s3"),
        ConfigKey("spark", ValueForm.BLOCK, NONE, "the Spark session", 'spark: {master: "local[4]"}', block="spark"),
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
            "schema registries by name",
            "schema_registries: {main: {url: https://registry.example}}",
            block="registry",
        ),
        ConfigKey(
            "openlineage",
            ValueForm.BLOCK,
            NONE,
            "where run events are sent",
            "openlineage: {type: file, path: events.jsonl}",
            block="openlineage",
        ),
        ConfigKey(
            "alerts",
            ValueForm.BLOCK,
            NONE,
            "where alerts of models that are kept running are sent, and when",
            'alerts: {url: "https://hooks.example/shop", lag: 10 minutes}',
            block="alerts",
        ),
        ConfigKey(
            "stalled_after",
            ValueForm.DURATION,
            "5 minutes",
            "how long a model with unread input may make no progress before `engine start` counts it as stalled: in "
            "the status, the metrics and alerts; a model's own wins",
            "stalled_after: 10 minutes",
        ),
        ConfigKey(
            "require_replayable",
            ValueForm.BOOLEAN,
            "`false`",
            "reject sources whose records cannot be read again",
            "require_replayable: true",
        ),
        ConfigKey(
            "allow_after_reading",
            ValueForm.TEXTS,
            NONE,
            "absolute paths of folders outside the project in which `after_reading` may archive or delete files",
            "allow_after_reading: [/data/landing]",
        ),
    ),
)
