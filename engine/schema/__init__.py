"""Every key that a project may write, as plain data: what it takes, its default, what it does.

    config_key       what a key and a block of keys are
    project_keys     project.yml; target_keys: its targets
    source_keys      sources and their tables; format_keys: what each format adds
    model_keys       the header of a model; stream_keys: the mappings inside it
    data_test_keys   data tests and columns; unit_test_keys: unit tests
    selector_keys    selectors.yml
    all_blocks       all of it by name, and the files in which it is written

Validation and its suggestions use these blocks; `json_schema` makes the schemas of editors from them, and
`reference_pages` the pages under docs/reference.
"""

from engine.schema.config_key import ConfigBlock, ConfigKey, ValueForm

__all__ = ["ConfigBlock", "ConfigKey", "ValueForm"]
