"""The protobuf messages in which spans are received and stored."""
