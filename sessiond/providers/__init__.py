"""One package an app, and nothing else; `sessiond.provider` says what a provider is and loads one."""
