"""Commands about this installation: doctor, data, update, pack, remove."""
