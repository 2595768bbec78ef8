/** Values of `pick:` for a name under `models:`. They decide which candidate is called first. */
export const ROUTING_STRATEGIES = ["ordered", "weighted", "fastest", "cheapest", "sticky"] as const;
/** A routing strategy. */
export type RoutingStrategy = (typeof ROUTING_STRATEGIES)[number];
