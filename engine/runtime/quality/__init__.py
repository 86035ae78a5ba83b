"""Bad records and expectations: counted, rejected or put into the quarantine."""
