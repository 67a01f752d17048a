"""Notifications to webhooks: where they go, what they say, how they are signed and sent."""
