// Generates the reference of metrics, gateway events, and log lines from the definitions that the
// gateway uses.
import { FIELDS } from "../../plugins/observers/access-log/fields.ts";
import {
  COUNTED_FAMILIES,
  OPEN_LABELS,
  type Family,
} from "../../plugins/observers/metrics/families.ts";
import { READ_METRICS } from "../../plugins/observers/metrics/gauges.ts";
import { UNITS } from "../../src/model/usage.ts";
import { declarationsOf, MODULES } from "../contract.ts";
import { collectLogMessages } from "./log-lines.ts";
import { code, FIRST_VERSION, page, type ReferencePage, sentence, table } from "./markdown.ts";

const SUFFIXES = { counter: "_total", info: "_info", gauge: "", histogram: "" } as const;
const UNIT_WORDS = { seconds: "seconds", bytes: "bytes", usd: "US dollars" } as const;

/** Name of a metric as a scraper reads it. */
export const metricName = ({ name, type }: Family): string => `${name}${SUFFIXES[type]}`;

function metricEntry(family: Family): string {
  const { type, unit, labels, help, bounds } = family;
  const facts = [
    sentence(`${type[0]!.toUpperCase()}${type.slice(1)}`),
    unit === undefined ? "" : `Unit: ${UNIT_WORDS[unit]}.`,
    labels.length === 0 ? "No labels." : `Labels: ${labels.map(code).join(", ")}.`,
    `Since ${FIRST_VERSION}.`,
  ];
  return [
    `### ${code(metricName(family))}`,
    `${facts.filter(Boolean).join(" ")}\n\n${sentence(help)}${bounds ? ` Buckets: ${bounds.join(", ")}.` : ""}`,
  ].join("\n\n");
}

function metricsPages(): ReferencePage[] {
  const all = [...Object.values(COUNTED_FAMILIES), ...Object.values(READ_METRICS)] as Family[];
  const isProcess = ({ name }: Family) => /^(?:process|nodejs)_/.test(name);
  const pages: readonly (readonly [
    slug: string,
    title: string,
    about: string,
    of: readonly Family[],
  ])[] = [
    [
      "metrics",
      "Metrics",
      "the metrics of requests, calls, and money, which are counted",
      Object.values(COUNTED_FAMILIES),
    ],
    [
      "metrics-gauges",
      "Metrics of the gateway's state",
      "the metrics that are read at each scrape",
      (Object.values(READ_METRICS) as Family[]).filter((one) => !isProcess(one)),
    ],
    [
      "metrics-processes",
      "Metrics of processes",
      "the metrics of each process, by process ID",
      all.filter(isProcess),
    ],
  ];
  return pages.map(([slug, title, about, families]) =>
    page(`${slug}.md`, [
      `# ${title}`,
      `This page is for operators. It lists ${about}. The observer [\`metrics\`](configuration/observers.md) serves them at \`GET /metrics\` on the admin listener.`,
      ...(slug === "metrics"
        ? [
            '```yaml\nobservers: [metrics]\nadmin:\n  tokens:\n    scraper: { role: metrics, token: "${env:SCRAPER_TOKEN}" }\nproviders:\n  demo: { use: demo }\n```',
            "See also [metrics of the gateway's state](metrics-gauges.md) and [metrics of processes](metrics-processes.md).",
            "## Labels",
            `The values of these labels come from outside: ${[...OPEN_LABELS]
              .filter((label) => !label.startsWith("gen_ai"))
              .map(code)
              .join(
                ", ",
              )}. Each metric has at most 2,000 series. Further values are counted as ${code("other")}.`,
            "## GenAI names",
            "The option `genai_names` adds the names of the OpenTelemetry GenAI conventions, with underscores: `gen_ai_client_operation_duration_seconds`, `gen_ai_client_inference_duration_seconds`, and others. Their labels are `gen_ai_operation_name`, `gen_ai_provider_name`, and `gen_ai_request_model`.",
            "For MCP, it adds `mcp_server_operation_duration_seconds` for requests of clients, and `mcp_client_operation_duration_seconds` for calls of tools at servers. Calls of tools are not counted under the names of model calls.",
          ]
        : []),
      "## List of metrics",
      ...families.map(metricEntry),
    ]),
  );
}

interface EventType {
  readonly type: string;
  readonly about: string;
  readonly members: readonly (readonly [name: string, type: string, about: string])[];
}

const plain = (comment: string): string =>
  comment
    .replaceAll(/^\s*\/?\*+\/?|\*\/$/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();

/** Parses the variants of the union `GatewayEvent` with their comments. */
export function gatewayEvents(): EventType[] {
  const all = declarationsOf(MODULES[0]!);
  const { text } = all.find(({ name }) => name === "GatewayEvent")!;
  const member = /(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)\s*(\w+)\??: ([^;]+);/g;
  const found: { type: string; about: string; members: (readonly [string, string, string])[] }[] =
    [];
  for (const [, comment, name, type] of text.matchAll(member))
    if (name === "type")
      found.push({ type: type!.slice(1, -1), about: plain(comment!), members: [] });
    else found.at(-1)!.members.push([name!, type!.replace(/^Opt<(.*)>$/, "$1"), plain(comment!)]);
  return found;
}

/** Types whose members an event has in addition to its listed members. */
const EVENT_PARTS: Readonly<Record<string, string>> = {
  budget_threshold_reached: "[`ThresholdReached`](plugin-api/keys-and-limits.md#thresholdreached)",
  quarantined: "[`QuarantinedHook`](plugin-api/gateway-events.md#quarantinedhook)",
};

const eventPage = (): ReferencePage =>
  page("gateway-events.md", [
    "# Gateway events",
    "This page is for operators and plugin authors. It lists the events that the gateway reports about itself. Observers receive them in `onEvent`, and the observer [`alerts`](configuration/alerts.md) sends alerts for some of them.",
    "Each event has `type` and `at`, the time in Unix milliseconds.",
    ...gatewayEvents().flatMap(({ type, about, members }) => [
      `## ${code(type)}`,
      about,
      EVENT_PARTS[type] === undefined ? "" : `It also has the members of ${EVENT_PARTS[type]}.`,
      members.length > 0
        ? table(
            ["Member", "Type", "Meaning"],
            members.map(([name, kind, words]) => [code(name), code(kind), words]),
          )
        : "",
    ]),
  ]);

/** Lines of requests, whose level and message depend on the outcome. */
export const REQUEST_LINES: readonly (readonly [message: string, level: string, about: string])[] =
  [
    ["request refused", "warn", "The client or a rule of the gateway is the cause"],
    ["request failed", "error", "No provider answered, or the gateway failed"],
    ["response aborted", "error, warn", "The response failed after its headers were sent"],
    ["client disconnected", "info", "The client canceled the request"],
    ["client timeout reached", "info", "The time limit of the client was reached"],
    ["slow request", "warn", "The first byte took longer than `log.slow_request`"],
    ["succeeded after retry", "warn", "Another attempt on the same target succeeded"],
    ["succeeded after fallback", "warn", "Another candidate succeeded"],
  ];

const REQUEST_FIELDS: readonly (readonly string[])[] = [
  ["`request`", "ID of the request, as in the header `x-request-id`"],
  ["`frontend`, `model`, `provider`, `credential`", "The route of the request"],
  ["`key`", "ID of the key"],
  ["`mode`", "`passthrough` or `translated`"],
  ["`status`, `outcome`", "HTTP status, and the outcome as in the access log"],
  ["`kind`, `code`, `errno`", "[Error kind](errors.md), error code, and system error"],
  ["`message`", "Message of the gateway. Messages of providers are never logged"],
  ["`calls`, `ms`, `headers_ms`", "Number of attempts, duration, and time to the headers"],
  ["`from`, `to`", "Candidate that failed, and candidate that succeeded"],
  ["`times`", "Number of equal lines in the last minute"],
];

const ACCESS_FIELDS: Readonly<Record<string, string>> = {
  time: "End of the request",
  id: "ID of the request, as in `x-request-id`",
  client_id: "ID that the client sent in `x-request-id`",
  session: "ID of the WebSocket that the request came through",
  status: "HTTP status",
  outcome: "`ok`, `client_error`, `refused`, `upstream_error`, `error`, or `canceled`",
  frontend: "Name of the frontend",
  method: "HTTP method",
  route: "Declared path of the route",
  key: "ID of the key",
  account: "Account of the key",
  labels: "Labels of the request",
  model: "Model that the client requested",
  alias: "Entry under `models` that matched",
  provider: "Provider that was called last",
  served_model: "Model that answered",
  credential: "Credential of the last call",
  mode: "`passthrough` or `translated`",
  stream: "Whether the response was streamed",
  attempts: "Number of calls to providers",
  fallback: "Whether another candidate than the first answered",
  cached: "Whether a middleware answered from a cache",
  error_kind: "[Kind](errors.md) of the error",
  error_code: "Code of the error",
  hook: "First hook that changed or rejected the request",
  finish_reason: "Why the model stopped",
  cost_usd: "Cost of all attempts, in US dollars",
  unpriced: "Number of attempts without a known price",
  bill_state: "State of the bill",
  translation_warnings: "Number of translation warnings",
  ms: "Duration of the request",
  ttft_ms: "Time to first token",
  overhead_ms: "Time in the gateway",
  bytes_in: "Size of the request body",
  bytes_out: "Size of the response body",
  privacy: "Privacy level of the request",
  worker: "Number of the worker",
  generation: "Number of the config generation",
  trace_id: "ID of the trace",
  client_address: "Address of the client, as far as `client_address` allows",
};

function logPage(): ReferencePage {
  const units = new Set<string>(UNITS);
  const fields = [...Object.keys(FIELDS), "client_address"].filter((name) => !units.has(name));
  const unknown = fields.filter((name) => ACCESS_FIELDS[name] === undefined);
  if (unknown.length > 0)
    throw new Error(`no description of the access log's ${unknown.join(", ")}`);
  const rank = (level: string) => ["error", "warn", "info", "debug"].indexOf(level.split(", ")[0]!);
  const known = new Set(REQUEST_LINES.map(([message]) => message));
  const lines = collectLogMessages()
    .filter(({ message }) => !known.has(message))
    .toSorted((a, b) => rank(a.level) - rank(b.level) || (a.message < b.message ? -1 : 1));
  return page("logs.md", [
    "# Logs",
    "This page is for operators. It lists the messages of the gateway's log and the fields of the access log. The log has one JSON object per line, and contains no prompt, no response, and no key.",
    "```yaml\nlog: { level: info, slow_request: 10s }\nproviders:\n  demo: { use: demo }\n```",
    "## Fields of each line",
    table(
      ["Field", "Meaning"],
      [
        ["`level`", "`error`, `warn`, `info`, or `debug`"],
        ["`time`", "Time of the line"],
        ["`msg`", "Message"],
      ],
    ),
    "## Lines of requests",
    "Only requests that failed, were slow, or needed another attempt are logged.",
    table(
      ["Message", "Level", "Meaning"],
      REQUEST_LINES.map(([message, level, about]) => [code(message), level, about]),
    ),
    table(["Field", "Meaning"], REQUEST_FIELDS),
    "## Other lines",
    "`…` stands for a part that depends on the case.",
    table(
      ["Message", "Level", "Fields"],
      lines.map(({ message, level, fields: own }) => [
        code(message),
        level,
        own.map(code).join(", "),
      ]),
    ),
    "## Fields of the access log",
    "The observer [`access-log`](configuration/observers.md) writes one line for each request. A field that does not apply is omitted.",
    table(
      ["Field", "Meaning"],
      fields.map((name) => [code(name), ACCESS_FIELDS[name]!]),
    ),
    `Each unit of usage is a field, too: ${UNITS.map(code).join(", ")}.`,
  ]);
}

export const monitoringPages = (): ReferencePage[] => [...metricsPages(), eventPage(), logPage()];
