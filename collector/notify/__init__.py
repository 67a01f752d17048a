"""Notifications to webhooks: targets, payloads, signatures and delivery."""
