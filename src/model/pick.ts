/** What `pick:` of a name under `models:` may say: which of its candidates is asked first. */
export const PICKS = ["ordered", "weighted", "fastest", "cheapest", "sticky"] as const;
/** One of them. */
export type PickName = (typeof PICKS)[number];
