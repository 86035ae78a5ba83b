"""All that Headrace uses of PySpark, Py4J and Spark without their promise to keep it.

Nothing else in `engine/` reaches below their public interfaces (tests/spark/test_internals.py searches for it), and the
tests there call everything here on a real session. With another Spark they fail, each with the name of what changed.
"""

from typing import Final

# The versions of PySpark with which those tests have passed.
CHECKED: Final = ("4.1.4",)
