/**
 * What the giver of a command, or the client of an admin route, must be at least. Each may what those before it may: metrics reads
 * counts and times, a viewer reads everything, an operator changes what can be changed back, an owner may do all. A user who may
 * open the state folder, and so its control socket, is an owner.
 */
export type Role = "metrics" | "viewer" | "operator" | "owner";
