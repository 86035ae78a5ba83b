"""S3 and stores with its interface.

In: the `s3:` block of a target (`s3_settings`); out: settings of each Java client, and Python's client (`s3_client`)
with errors that name a place and a fix. `whole_objects` reads objects and compares their content with a sum.
"""
