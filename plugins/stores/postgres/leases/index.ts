// Budget leases, and the calls that they allow in offline mode. This folder is loaded only if
// `lease_threshold` or `on_outage` requires leases.
export { BudgetLeases } from "./budget-leases.ts";
export { LeasedCalls } from "./offline-calls.ts";
