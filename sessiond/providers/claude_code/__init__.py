"""Claude Code: sessions below `projects/` of each home. The format is told in docs/formats/claude-code.md."""

from sessiond.providers.claude_code.provider import ClaudeCode

__all__ = ["ClaudeCode"]
