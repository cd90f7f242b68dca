"""Models of trees as files of other libraries, read and written."""
