"""The format of results has moved to ``regretless.results``."""

from regretless.results import Result as Result
from regretless.results import read_record as read_record
from regretless.results import read_result as read_result
from regretless.results import write_result as write_result
