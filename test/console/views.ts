// Every view of the console that is opened and checked, one per line.
export interface View {
  /** Name of the image file. */
  readonly name: string;
  /** Behind /console. */
  readonly address: string;
  /** Texts that are visible when it is complete. */
  readonly shows: string;
  /** Text of a link to click. */
  readonly opens?: string;
  /** It is in docs/guides/console.md. */
  readonly inDocs?: true;
}

export const VIEWS: readonly View[] = [
  { name: "overview", address: "?range=24h", shows: "Spend by model", inDocs: true },
  { name: "usage", address: "/usage?range=24h", shows: "Cost by model", inDocs: true },
  { name: "requests", address: "/requests", shows: "acme/echo", inDocs: true },
  { name: "requests-ledger", address: "/requests?range=7d", shows: "Searched back to" },
  { name: "request", address: "/requests", shows: "acme/think", opens: "acme/think", inDocs: true },
  { name: "sockets", address: "/sockets", shows: "Open connections" },
  { name: "jobs", address: "/jobs", shows: "Oldest open job" },
  { name: "models", address: "/models", shows: "acme/echo" },
  { name: "model", address: "/models?model=acme/echo", shows: "Model metadata and sources" },
  { name: "providers", address: "/providers", shows: "Health" },
  { name: "provider", address: "/providers?provider=acme", shows: "Recent errors", inDocs: true },
  { name: "mcp", address: "/mcp", shows: "billing/listInvoices" },
  { name: "routing", address: "/routing?model=fast", shows: "called first", inDocs: true },
  { name: "keys", address: "/keys", shows: "nightly batch", inDocs: true },
  { name: "key-new", address: "/keys?new=key", shows: "Create the key" },
  { name: "key", address: "/keys?q=laptop", shows: "laptop", opens: "laptop", inDocs: true },
  { name: "account", address: "/keys?account=web", shows: "Limits and budgets" },
  { name: "scopes", address: "/scopes", shows: "Members of" },
  { name: "config", address: "/config", shows: "frontends.messages.use", inDocs: true },
  { name: "config-check", address: "/config?view=check", shows: "Another gateway.yaml" },
  { name: "fleet", address: "/fleet", shows: "this one", inDocs: true },
  { name: "ledger", address: "/ledger", shows: "Verify now" },
  { name: "caches", address: "/caches", shows: "Cached share" },
  { name: "bills", address: "/bills", shows: "Compare with a bill" },
  { name: "audit", address: "/audit", shows: "keys.create", inDocs: true },
  { name: "admins", address: "/admins", shows: "Defined in gateway.yaml", inDocs: true },
  { name: "realtime", address: "/realtime", shows: "Connect, then speak or type" },
  { name: "playground", address: "/playground", shows: "Code for this request", inDocs: true },
];
