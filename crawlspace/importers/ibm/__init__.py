"""IBM: the master_config folder of a Web crawler of OmniFind, Content Analytics and Watson Content Analytics."""
