// Pages of the console, each rendered with the answers of a gateway.
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { asBrowser, pagesRemoved, rendered, type RenderedPage } from "./rendered.ts";

const WEB = "../../../plugins/observers/console/web";
const ALL = [
  "admins.list",
  "audit.list",
  "fleet",
  "status",
  "models.list",
  "requests.show",
  "requests.search",
] as const;

let setAllowedCommands: (commands: readonly string[]) => void;
afterAll(async () => {
  await pagesRemoved();
  vi.unstubAllGlobals();
});
beforeAll(async () => {
  asBrowser("/console");
  ({ setAllowedCommands } = (await import(`${WEB}/session.ts`)) as {
    setAllowedCommands: typeof setAllowedCommands;
  });
  setAllowedCommands(ALL);
});

async function page(
  file: string,
  name: string,
  answers: Readonly<Record<string, (input: any) => unknown>>,
  { address = "/console", props = {} }: { address?: string; props?: object } = {},
): Promise<RenderedPage> {
  asBrowser(address);
  const all = (await import(`${WEB}/pages/${file}.ts`)) as Record<string, unknown>;
  return rendered(all[name], answers, props);
}

const firstCells = (of: RenderedPage, count: number): string[] =>
  of.rows().map((cells) => cells.slice(0, count).join(" | "));

it("Admins lists tokens of the file and groups of the identity provider with role and account", async () => {
  setAllowedCommands(["admins.list"]);
  using admins = await page("admins", "AdminsPage", {
    "admins.list": () => ({
      admins: [
        { id: "a1", name: "lead", role: "operator", account: "lab", created: 1, state: "valid" },
        { id: "a2", name: "old", role: "owner", created: 1, state: "revoked" },
      ],
      tokens: [{ name: "ci", role: "metrics" }],
      oidc: {
        issuer: "https://idp.example",
        roles: [
          { group: "platform", role: "owner" },
          { group: "labs", role: "viewer", account: "lab" },
        ],
      },
    }),
  });
  await admins.shows("platform");
  expect(firstCells(admins, 3)).toEqual([
    "Admin | State | Role",
    "lead | valid | operator account lab",
    "old | revoked | owner",
    "Name | Signs in with | Role",
    "ci | a token | metrics",
    "platform | the identity provider, through this group | owner",
    "labs | the identity provider, through this group | viewer account lab",
  ]);
  expect(admins.text()).toContain("https://idp.example");
  // The user may not create or end admins, nor list sessions: none of these is offered.
  expect(admins.text()).not.toMatch(/New admin|Sessions|\bEnd\b/);
});

it("Admins explains an empty list in the file, and shows only permitted actions", async () => {
  setAllowedCommands([...ALL, "admins.create", "sessions.list"]);
  using admins = await page("admins", "AdminsPage", {
    "admins.list": () => ({ admins: [], tokens: [], oidc: null }),
    "sessions.list": () => ({ sessions: [] }),
  });
  await admins.shows("no tokens under admin.tokens and no groups under admin.oidc.roles");
  expect(admins.text()).toMatch(/New admin.*Sessions/);
  setAllowedCommands(ALL);
});

it("Usage forecasts spend, and lists budgets that run out before they reset", async () => {
  setAllowedCommands([...ALL, "usage.forecast"]);
  const budget = {
    subject: "key",
    id: "k1",
    limit: "usd=100/month",
    usedUsd: "90",
    perDayUsd: "2",
  };
  using forecast = await page("usage/usage-forecast", "UsageForecast", {
    "usage.forecast": () => ({
      perDayUsd: "3.5",
      days: 14,
      month: { spentUsd: "90", projectedUsd: "104.25" },
      budgets: [
        { ...budget, name: "web", exhaustsAt: "2026-12-02T00:00:00.000Z" },
        { ...budget, name: "idle", exhaustsAt: null },
      ],
    }),
  });
  await forecast.shows("Spend per day");
  expect(forecast.text()).toMatch(/\$3\.50.*mean of 14 days.*\$104\.25 projected/);
  expect(firstCells(forecast, 4)).toEqual([
    "Budget | Limit | Used | Per day",
    "key web | usd=100/month | $90.00 | $2.00",
  ]);
});

it("Fleet does not count a command that has the store open as a gateway", async () => {
  const info = { version: "1.0.0", host: "h1", pid: 7, generation: 2, config: "abcdef0123" };
  const node = {
    isSelf: false,
    state: "live",
    lastHeartbeatAt: 1,
    openCalls: 0,
    clockAheadMs: 0,
    syncLagMs: 0,
  };
  using fleet = await page("fleet", "FleetPage", {
    fleet: () => ({
      nodes: [
        { ...node, isSelf: true, instance: "gateway-one", info: { ...info, workers: 2 } },
        { ...node, state: "dead", instance: "gateway-two", info },
      ],
      commandPrograms: [
        { ...node, instance: "command-one", info: { ...info, pid: 4242, host: "h9" } },
      ],
      warnings: [],
    }),
    status: () => ({
      pid: 7,
      startedAt: 1,
      generations: [{ generation: 2, inFlight: 3 }],
      workers: [{ pid: 8, startedAt: 1, generations: [{ generation: 2, inFlight: 3 }] }],
    }),
  });
  await fleet.shows("Processes of this gateway");
  expect(fleet.text()).toContain("Live gateways 1 1 stopped or lost");
  expect(fleet.text()).toContain("Workers 2");
  expect(fleet.text()).toContain("One CLI command has the store open: pid 4242 on h9.");
  const gateways = firstCells(fleet, 2).filter((row) => /live|dead/.test(row));
  expect(gateways).toEqual(["gateway- (this one) | live", "gateway- | dead"]);
});

it("Audit requests full days in the user's time zone, including the last one", async () => {
  const row = { at: 1, actor: "admin:anna", role: "owner", channel: "token", outcome: "done" };
  using audit = await page(
    "audit",
    "AuditPage",
    { "audit.list": () => ({ items: [{ ...row, id: "x", command: "keys.create" }] }) },
    { address: "/console/audit?from=2026-03-01&to=2026-03-02" },
  );
  await audit.shows("keys.create");
  expect(audit.asked).toEqual([
    [
      "audit.list",
      {
        limit: 100,
        from: new Date(2026, 2, 1).getTime(),
        to: new Date(2026, 2, 3).getTime(),
      },
    ],
  ]);
  expect(audit.text()).toContain("tollgate audit --since 2026-03-01 --until 2026-03-02");
});

it("Models shows the hedging of each alias", async () => {
  const alias = { pick: "ordered", targets: [{ model: "demo/echo", mounted: true }] };
  using models = await page("models/models", "ModelsPage", {
    "models.list": () => ({
      models: [],
      aliases: [
        { ...alias, name: "plain" },
        { ...alias, name: "fast", hedge: "4s" },
        { ...alias, name: "deep", hedge: { quick: "4s", reasoning: "1m" } },
      ],
    }),
  });
  await models.shows("deep");
  const rows = models.rows().map((cells) => [cells[0], cells.at(-1)]);
  expect(rows).toEqual([
    ["Alias", "Hedging"],
    ["plain", "off"],
    ["fast", "after 4s"],
    ["deep", "quick: after 4s, reasoning: after 1m"],
  ]);
});

const call = (n: number, more: object = {}) => ({
  n,
  startMs: (n - 1) * 2_000,
  provider: "ab"[n - 1],
  model: "m",
  credential: "default",
  protocol: null,
  mode: "passthrough",
  state: "exact",
  usage: {},
  costNano: "3000000",
  ms: { total: 900 },
  ...more,
});
const LOST = { state: "estimated", fault: { kind: "canceled", code: "hedge_lost" } };

it.each([
  [
    "wins",
    [call(1, LOST), call(2, { hedge: true })],
    "Call 2 was sent 2.00 s after call 1, which had not returned a first token. Call 2 returned its first token first, so call 1 was canceled. The canceled call cost $0.003 (estimated).",
    ["1 a/m (lost)", "2 b/m (hedge)", "canceled after 900 ms"],
  ],
  [
    "loses",
    [call(2, { hedge: true, ...LOST }), call(1)],
    "Call 1 returned its first token first, so call 2 was canceled. The canceled call cost $0.003 (estimated).",
    ["1 a/m", "2 b/m (hedge, lost)"],
  ],
  [
    "fails",
    [call(2, { hedge: true, fault: { kind: "timeout" } }), call(1)],
    "Call 2 was sent 2.00 s after call 1, which had not returned a first token. It failed (timeout).",
    ["2 b/m (hedge)"],
  ],
] as const)(
  "a request whose hedge %s names both calls and the cost of the canceled one",
  async (_, calls, words, names) => {
    using story = await page(
      "requests/request",
      "RequestDetail",
      {
        "requests.show": () => ({
          requests: [
            {
              id: "r1",
              record: {
                at: 1,
                id: "r1",
                status: 200,
                outcome: "ok",
                ms: 3_000,
                overheadMs: 1,
                calls,
              },
              charges: [],
            },
          ],
        }),
      },
      { props: { id: "r1", close() {} } },
    );
    await story.shows(words);
    for (const name of names) expect(story.text()).toContain(name);
  },
);

it("a request without a hedge shows nothing about hedges", async () => {
  const record = {
    at: 1,
    id: "r2",
    status: 200,
    outcome: "ok",
    ms: 9,
    overheadMs: 1,
    calls: [call(1)],
  };
  using story = await page(
    "requests/request",
    "RequestDetail",
    { "requests.show": () => ({ requests: [{ id: "r2", record, charges: [] }] }) },
    { props: { id: "r2", close() {} } },
  );
  await story.shows("1 a/m");
  expect(story.text()).not.toMatch(/hedge|canceled/);
});

it("Routing names the first candidate, and those that a cooldown moves behind it", async () => {
  setAllowedCommands(["explain", "policy.explain", "models.list", "status"]);
  const candidate = { credential: "main", protocol: "messages", mode: "passthrough" };
  const cooldown = { state: "open", reason: "5 errors", until: 0 };
  const candidates = [
    { ...candidate, id: "far/m", callOrder: "last", isCoolingDown: true, cooldown },
    { ...candidate, id: "near/m", callOrder: "first" },
    { ...candidate, id: "other/m" },
  ];
  const explained = {
    model: "fast",
    frontend: "messages",
    hooks: { admit: ["auth"], inspect: [] },
    timeouts: { connectMs: 5_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 },
  };
  const answers = (all: readonly object[]) => ({
    "models.list": () => ({ models: [{ id: "fast" }] }),
    status: () => ({ frontends: [{ name: "messages" }] }),
    explain: () => ({ ...explained, candidates: all }),
    "policy.explain": () => ({ routes: [], blockedBy: [] }),
  });
  const address = "/console/routing?model=fast";
  using routing = await page("routing", "RoutingPage", answers(candidates), { address });
  await routing.shows("near/m is called first, with the credential main");
  expect(routing.text()).toContain("In cooldown: far/m (main).");
  expect(firstCells(routing, 4)).toEqual([
    "Actions | Model | Credential | Status",
    "1. | far/m | main | in cooldown, called last its requests fail ( 5 errors )",
    "2. | near/m | main | called first",
    "3. | other/m | main | called next",
  ]);
  const only = [{ ...candidates[0]!, callOrder: "first" }];
  using cold = await page("routing", "RoutingPage", answers(only), { address });
  await cold.shows("This and all other candidates are in cooldown.");
  expect(cold.text()).not.toContain("In cooldown: far/m");
});

it("Requests searches the ledger by model pattern and by outcome", async () => {
  const one = {
    id: "r9",
    at: 1,
    status: "failed",
    key: "k1",
    labels: {},
    model: "openai/gpt-6",
    calls: [{ ...call(1, { provider: "openai" }), attempt: "r9.1", outcome: "rate_limited" }],
  };
  using requests = await page(
    "requests/requests",
    "RequestsPage",
    { "requests.search": () => ({ items: [one], searchedBackTo: 0 }) },
    {
      address: "/console/requests?range=all&model=openai/*&outcome=rate_limited",
      props: { rest: "" },
    },
  );
  await requests.shows("The whole time range was searched.");
  expect(requests.asked).toEqual([
    ["requests.search", { model: "openai/*", outcome: "rate_limited", limit: 50 }],
  ]);
  expect(requests.text()).toContain("rate_limited (429)");
  expect(requests.text()).toContain("not the HTTP status of the response");
});

it("Bills compares a period, and names causes, models, and credentials", async () => {
  const [list, compare] = ["observers.reconcile/bills", "observers.reconcile/compare"];
  setAllowedCommands([...ALL, list!, compare!]);
  const group = { day: "2026-11-27", projects: ["p"], keys: ["key_a"], calls: 3 };
  using bills = await page("bills", "BillsPage", {
    [list!]: () => ({ providers: ["openai"] }),
    [compare!]: ({ provider }) => ({
      provider,
      oursUsd: "1.5",
      theirsUsd: "2",
      differenceUsd: "0.5",
      causes: { outside: "0.25", price: "0.25" },
      corrections: [{}],
      groups: [
        {
          ...group,
          model: "gpt-6",
          credential: "main",
          oursUsd: "1.5",
          theirsUsd: "1.75",
          differences: [{ cause: "price", usd: "0.25", calls: 3, attempts: [] }],
        },
        {
          ...group,
          model: null,
          credential: null,
          oursUsd: "0",
          theirsUsd: "0.25",
          differences: [{ cause: "outside", usd: "0.25", calls: 0, attempts: [] }],
        },
      ],
    }),
  });
  await bills.shows("Compare with a bill");
  bills.submit();
  await bills.shows("Models by day");
  expect(bills.text()).toMatch(/1 calls can be corrected/);
  expect(firstCells(bills, 4)).toEqual([
    "Cause | Bill minus ledger",
    "Usage that did not pass the gateway | $0.25",
    "Calls that the provider billed at another rate | $0.25",
    "Day | Model | Credential | Calls",
    "2026-11-27 | gpt-6 | main | 3",
    "2026-11-27 | other charges | other keys | 3",
  ]);
});

const job = (id: string, status: string, more: object = {}) => ({
  id,
  kind: "batch",
  status,
  key: "k1",
  keyName: "laptop",
  createdAt: Date.now() - 60_000,
  canCancel: status === "running",
  ...more,
});

it("Jobs shows progress, status, and cost so far, and cancels an open job", async () => {
  setAllowedCommands(["jobs.list", "jobs.cancel"]);
  const asked: unknown[] = [];
  using jobs = await page("jobs", "JobsPage", {
    "jobs.list": (input) => {
      asked.push(input);
      return {
        items: [
          job("batch_1", "running", { progress: { total: 40, done: 10, failed: 2 } }),
          job("batch_2", "completed", { costUsd: "0.0125", model: "acme/echo", account: "web" }),
          job("batch_3", "failed", { message: "The line is not JSON." }),
        ],
        isTruncated: true,
      };
    },
  });
  await jobs.shows("batch_3");
  expect(jobs.rows().map((cells) => cells.join(" | ").replace(/ +/g, " "))).toEqual([
    expect.stringMatching(/^Job \| Status \| Progress \| Key \| Model \| Cost so far \| Created/),
    expect.stringMatching(/running.*10 of 40.*2 failed.*laptop/),
    expect.stringMatching(/completed.*laptop.*web.*acme\/echo.*\$0\.0125/),
    expect.stringMatching(/failed.*The line is not JSON\./),
  ]);
  expect(jobs.text()).toContain("Older jobs are not shown.");
  expect(jobs.text().match(/Cancel/g)).toHaveLength(1);
  expect(asked[0]).toEqual({ limit: 200 });
});

it("Jobs offers no cancellation to a viewer, and explains an empty list", async () => {
  setAllowedCommands(["jobs.list"]);
  using jobs = await page("jobs", "JobsPage", {
    "jobs.list": () => ({ items: [], isTruncated: false }),
  });
  await jobs.shows("No job was found.");
  expect(jobs.text()).not.toContain("Cancel the job");
});

it("Prompt caches shows the cached share by key, and in total", async () => {
  setAllowedCommands([...ALL, "ledger.caches"]);
  const row = { calls: 2, input: 1_000, read: 800, written: 100, unread: 0 };
  const changes = { changed: 2, differences: [{ place: "system 1204", calls: 2 }] };
  using caches = await page("caches", "CachesPage", {
    "ledger.caches": () => ({
      by: "key",
      rows: [
        { name: "key_a", ...row, changed: 0, differences: [] },
        { name: "key_b", ...row, read: 0, unread: 100, ...changes },
      ],
      keyNames: { key_a: "laptop" },
    }),
  });
  await caches.shows("40.0%");
  expect(firstCells(caches, 5)).toEqual([
    "key | calls | input | cached | share",
    "laptop | 2 | 1,000 | 800 | 80.0%",
    "key_b | 2 | 1,000 | 0 | 0.0%",
  ]);
  expect(caches.rows().map((cells) => cells.slice(7).join(" | "))).toEqual([
    "changed | first difference",
    "0 | ",
    "2 | system 1204 (2)",
  ]);
});

it("Scopes shows members with their limits, and resets one", async () => {
  setAllowedCommands(["scopes.list", "scopes.show", "scopes.reset"]);
  const scope = {
    name: "session",
    from: ["header:session-id"],
    within: "key",
    limits: ["usd=20/total"],
    overflow: "downgrade",
    downgradeModel: "small",
    maxMembers: 10_000,
    idleMs: 43_200_000,
  };
  const usage = {
    limit: "usd=20/total",
    unit: "nano_usd",
    max: "20000000000",
    used: "5000000000",
    reserved: "0",
    remaining: "15000000000",
    resetsAt: 0,
  };
  const asked: unknown[] = [];
  using scopes = await page("scopes", "ScopesPage", {
    "scopes.list": () => ({ scopes: [scope] }),
    "scopes.show": (input: unknown) => {
      asked.push(input);
      return {
        scope,
        memberCount: 3,
        members: [
          {
            value: "4f2c",
            key: "k1",
            keyName: "laptop",
            calls: 3,
            costUsd: "5",
            limitUsage: [usage],
          },
          {
            value: "9d1a",
            key: "k2",
            calls: 9,
            costUsd: "20",
            limitUsage: [{ ...usage, used: usage.max, remaining: "0" }],
          },
        ],
      };
    },
  });
  await scopes.shows("4f2c");
  expect(asked[0]).toEqual({ name: "session" });
  const text = scopes.text();
  for (const shown of [
    "laptop",
    "$5.00 of $20.00",
    "at a limit",
    "Downgrade",
    "1 members with a lower cost are not shown.",
  ])
    expect(text).toContain(shown);
  expect(text.match(/Reset/g)).toHaveLength(2);
});

it("Scopes explains how to add one", async () => {
  setAllowedCommands(["scopes.list", "scopes.show"]);
  using scopes = await page("scopes", "ScopesPage", { "scopes.list": () => ({ scopes: [] }) });
  await scopes.shows("in gateway.yaml");
});
