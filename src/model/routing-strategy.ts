/** What `pick:` of a name under `models:` may say: which of its candidates is asked first. */
export const ROUTING_STRATEGIES = ["ordered", "weighted", "fastest", "cheapest", "sticky"] as const;
/** One of them. */
export type RoutingStrategy = (typeof ROUTING_STRATEGIES)[number];
