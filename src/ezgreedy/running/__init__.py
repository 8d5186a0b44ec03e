"""What happens: agents are trained, evaluated, interrupted and continued, and their runs kept."""
