"""The codes of all diagnostics, by the Markdown file that explains them."""

from __future__ import annotations

_BY_PAGE = {
    "aggregates": """
        agg-needs-event-time agg-key-lost-watermark agg-two-windows agg-distinct agg-not-grouped
        agg-null-groups agg-alias-key collation-key distinct-needs-event-time complete-needs-aggregate
        update-needs-key update-filter chain-mode chain-join-mode
    """,
    "command-line": """
        usage selection-empty plan-not-allowed no-access output-unwritable sql-query text-not-utf8 internal-error
        interrupted
    """,
    "environment": """
        java-missing java-version java-start java-ended spark-session class-archive jars-download
        jars-checksum jars-cache catalog-unusable catalog-unreachable catalog-denied catalog-busy lake-moved
        s3-client s3-denied s3-missing s3-unreachable secret-untrusted trust-file
        lake-outside control-folder target-unwritable target-link disk-full cluster-unreachable
        cluster-without-executors
    """,
    "jinja": """
        jinja-syntax jinja-undefined jinja-error jinja-security template-too-large compiler-error var-missing
        vars-unused env-missing secret-outside-target secret-misplaced run-varying-value
    """,
    "joins": """
        join-mode join-no-equality join-outer-condition join-unmatched-rows join-outer-static join-anti
        join-never-matches
    """,
    "kafka-and-registry": """
        unknown-connection connection-settings source-credentials plain-http kafka-unreachable kafka-rejected
        kafka-certificate kafka-denied kafka-topic source-replaced source-shrunk source-gap source-start
        source-new-topic
        registry-unreachable registry-auth registry-answer registry-subject registry-id registry-schema
    """,
    "project-files": """
        project-missing no-models unknown-target engine-version file-unreadable control-character
        trojan-source path-outside unread-file properties-file profiles-file packages-file model-too-large cache-damaged
        process-ended import-unreadable import-version
    """,
    "references": """
        unknown-ref unknown-source unknown-macro undeclared-relation ref-cycle streams-missing
        streams-unexpected stream-unread stream-unlisted stream-bounded stream-not-streamable
        source-not-replayable
    """,
    "runs": """
        bad-record bad-records too-many-bad-records
        expectation-failed hook-failed duplicate-key clock-behind commit-conflict comments-failed
        openlineage-failed maintenance-skipped extract-empty extract-order sequence-null
    """,
    "sinks": """
        sink-unreachable sink-table sink-key sink-failed sink-fenced sink-position sink-history sink-rows-changed
        sink-unpublished sink-personal sink-schema
    """,
    "sources": """
        source-folder-missing source-path source-unreadable source-table source-columns unknown-columns
        sample-empty socket-unreachable file-changed file-renamed file-missing files-skipped files-gone
        source-is-model after-reading-shared after-reading-outside after-reading-failed avro-schema avro-columns
    """,
    "sql": """
        sql-syntax comment-continues not-a-query qualify-not-supported stream-clause spark-variable sql-too-large
        sql-too-deep unknown-column ambiguous-column column-type column-undeclared column-storage column-count
        union-columns misplaced-expression unknown-function argument-count argument-constant time-part
        type-mismatch string-for-column subquery-place subquery-over-union query-too-deep query-failed
    """,
    "state-and-tables": """
        not-running
        build-rejected table-locked project-running process-lost request-invalid lease-lost state-unsafe model-changed
        materialization-changed
        source-changed state-missing state-copied state-schema defer-catalog defer-missing
        state-unreadable state-unwritable checkpoint-lost checkpoint-damaged checkpoint-changed
        checkpoint-reset
        reset-duplicates reset-position reset-totals reset-windows batch-unfinished table-missing
        table-replaced table-rolled-back table-schema name-taken orphan-table drop-unfinished refresh-unfinished
        full-refresh-protected
        erase-blocked erase-unread backfill-rejected backfill-unread rollback-unavailable rollback-unfinished
        rename-blocked table-renamed
        clone-unavailable table-cloned rebuild-unavailable rebuild-unfinished rebuild-restarted
        downstream-stops upstream-history upstream-replaced upstream-rewritten not-published staged-rows
        publish-diverged empty-existing refresh-not-incremental
    """,
    "streaming-queries": """
        not-streaming sort-on-stream over-on-stream offset-on-stream sample-on-stream monotonic-id-on-stream
        recursive-cte-on-stream subquery-on-stream limit-whole-stream limit-mode limit-over-state
        union-stream-batch except-needs-event-time except-right-stream intersect-on-stream change-query
        change-columns
    """,
    "tests": """
        unit-test-input unit-test-value unit-test-failed
    """,
    "unbounded-state": """
        unbounded-groups unbounded-complete unbounded-distinct unbounded-collection unbounded-join
    """,
    "watermarks-and-windows": """
        watermark-syntax watermark-type watermark-missing-column
        watermark-two-columns watermark-unused watermark-held watermark-ahead dedup-needs-watermark
        window-syntax window-unused window-name-clash window-ambiguous window-many window-week window-slide
        window-months window-length window-type window-no-watermark session-no-watermark session-mode
        session-needs-key session-grouping-sets
    """,
    "yaml-and-settings": """
        yaml-syntax yaml-duplicate-key yaml-too-large yaml-split-item header-unclosed header-position
        header-form header-comment-end unknown-key missing-key wrong-type bad-value bad-name bad-duration bad-schema
        duplicate-name duplicate-table renamed-from config-conflict dbt-materialization not-supported setting-needs
        setting-conflict setting-pinned setting-wap condition-syntax partition-clash partition-type trigger-continuous
        trigger-once schedule-syntax unknown-option duplicate-option acknowledge-unused folder-not-shared
    """,
}
CODES: frozenset[str] = frozenset(code for codes in _BY_PAGE.values() for code in codes.split())
