"""What people do on this GitHub: every act changes the state and sends the webhooks GitHub would send."""
