/**
 * Minimum role of the caller of a command or an admin route. Each role includes the previous roles:
 * `metrics` reads counts and durations, `viewer` reads everything, `operator` makes changes that
 * can be undone, and `owner` can do everything. A user who can access the state directory, and
 * therefore its control socket, is an owner.
 */
export type Role = "metrics" | "viewer" | "operator" | "owner";
