"""Remove what is not ours from the manifest.json of dbt: python shorten_manifest.py target/manifest.json FILE."""

import json
import sys
from pathlib import Path

source, destination = map(Path, sys.argv[1:3])
manifest = json.loads(source.read_text(encoding="utf-8"))
project = manifest["metadata"]["project_name"]
for macro in manifest["macros"].values():
    if macro["package_name"] != project:
        macro["macro_sql"] = ""
callers = [*manifest["nodes"].values(), *(m for m in manifest["macros"].values() if m["package_name"] == project)]
called = {name for caller in callers for name in caller["depends_on"]["macros"]}
manifest["macros"] = {
    key: macro for key, macro in manifest["macros"].items() if macro["package_name"] == project or key in called
}
for macro in manifest["macros"].values():
    if macro["package_name"] != project:
        macro["depends_on"] = {"macros": []}
manifest["docs"] = {}
for key in ("invocation_id", "invocation_started_at", "run_started_at", "project_id", "user_id", "generated_at"):
    manifest["metadata"].pop(key, None)


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in ("created_at", "root_path")}
    return [without_times(item) for item in value] if isinstance(value, list) else value


destination.parent.mkdir(exist_ok=True)
destination.write_text(json.dumps(without_times(manifest), indent=1, sort_keys=True) + "\n", encoding="utf-8")
