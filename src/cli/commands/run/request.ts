import type { ChargedAttempt } from "../../../runtime/requests/request-charges.ts";
import type {
  FoundRequest,
  FoundRequests,
  ShownRequest,
} from "../../../admin/commands/request-commands.ts";
import { inputTokens, outputTokens } from "../../../model/usage.ts";
import { formatUsd } from "../../../money/decimal.ts";
import type { CliCommand } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import {
  sanitize,
  alignColumns,
  formatTime,
  paint,
  printRemark,
  print,
} from "../../format/terminal.ts";
import { statusColor, formatFault, formatDuration } from "../../format/request-line.ts";

export const command: CliCommand = gatewayCommand<FoundRequests>("requests.show", {
  omit: ["account"],
  print({ requests, rememberedSince }) {
    print(requests.map(formatRequest).join("\n\n"));
    if (requests.some(({ record }) => !record))
      printRemark(
        rememberedSince === undefined
          ? "No gateway is running. Showing ledger data only."
          : `Request history starts at ${formatTime(rememberedSince)}. Showing ledger data only.`,
      );
  },
});

type Row = readonly [name: string, value: string];
type ServedRequest = Extract<ShownRequest, { frontend: string }>;

function formatRequest({ id, record, charges }: FoundRequest): string {
  const [first] = charges;
  const rows: Row[] = [
    ["request", id],
    ...(record ? observedRows(record) : ledgerRequestRows(first!)),
    ...attemptRows(record, charges),
  ];
  return alignColumns(rows.map(([name, value]) => [paint("gray", name), value]));
}

function observedRows(seen: ShownRequest): Row[] {
  if (!("frontend" in seen))
    return [
      ["finished", formatTime(seen.at)],
      ["response", `${paint("yellow", String(seen.status))} ${seen.code}, rejected before routing`],
      ["listener", seen.listener === "admin" ? "admin listener" : "client listener"],
      ...(seen.method ? [["method", seen.method] as const] : []),
    ];
  return [
    ...(seen.clientRequestId
      ? [["client request ID", sanitize(seen.clientRequestId)] as const]
      : []),
    ...(seen.session ? [["WebSocket", seen.session] as const] : []),
    ["finished", `${formatTime(seen.at)}, after ${formatDuration(seen.ms)}`],
    ["response", formatOutcome(seen)],
    ["requested", formatTarget(seen)],
    ["client", formatClient(seen)],
    ...labelRow(seen.labels),
    ...privacyRows(seen),
    ...timeRows(seen),
    ...routingRows(seen),
    ...(seen.hooks ?? []).map(({ plugin, hook, effect, ms }): Row => [
      "hook",
      `${plugin} ${hook}: ${effect.replace("_", " ")}${ms === undefined ? "" : `, ${formatDuration(ms)}`}`,
    ]),
    ...Object.entries(seen.lossCodes).map(([code, n]): Row => [
      "translation warning",
      `${code} × ${n}`,
    ]),
  ];
}

function formatOutcome(seen: ServedRequest): string {
  const { status, fault, finish, outcome, bytesOut, cached, mode } = seen;
  return [
    paint(statusColor(status, fault !== undefined), `${status} ${outcome.replace("_", " ")}`),
    ...(fault ? [formatFault(fault)] : []),
    ...(finish ? [finish] : []),
    `${bytesOut.toLocaleString("en")} bytes`,
    ...(mode ? [mode] : []),
    ...(cached ? ["from a recording"] : []),
  ].join(", ");
}

const formatTarget = (seen: ServedRequest): string =>
  [
    sanitize(seen.model) || "no readable model",
    ...(seen.alias && seen.alias !== seen.model ? [`alias ${seen.alias}`] : []),
    ...(seen.stream ? ["streaming"] : []),
    `${seen.method} ${sanitize(seen.route)} (${seen.frontend}, ${seen.action})`,
    `${seen.bytesIn.toLocaleString("en")} bytes`,
  ].join(", ");

const formatClient = ({ key, keyName, account, generation, worker }: ServedRequest): string =>
  [
    key === undefined ? "no key" : formatKey(key, keyName),
    ...(account ? [`account ${sanitize(account)}`] : []),
    `config ${generation}${worker > 0 ? `, worker ${worker}` : ""}`,
  ].join(", ");

const formatKey = (id: string, name: string | undefined): string =>
  name === undefined ? sanitize(id) : `${sanitize(name)} (${id})`;

const labelRow = (labels: ServedRequest["labels"]): Row[] => {
  const pairs = Object.entries(labels).map(([name, value]) => sanitize(`${name}=${value}`));
  return pairs.length > 0 ? [["labels", pairs.join(", ")]] : [];
};

const privacyRows = ({ privacy, zdrReceipt }: ServedRequest): Row[] =>
  privacy === "off" && !zdrReceipt
    ? []
    : [["privacy", [privacy, ...(zdrReceipt ? [sanitize(zdrReceipt)] : [])].join(", ")]];

const timeRows = ({ firstTokenMs, overheadMs }: ServedRequest): Row[] => [
  [
    "times",
    [
      ...(firstTokenMs === undefined ? [] : [`first token ${formatDuration(firstTokenMs)}`]),
      `gateway overhead ${formatDuration(overheadMs)}`,
    ].join(", "),
  ],
];

function routingRows(seen: ServedRequest): Row[] {
  const { served, isPinned, skippedCandidates = [] } = seen;
  return [
    ...(served
      ? [["served by", `${sanitize(served)}${isPinned ? ", which keeps its state" : ""}`] as const]
      : []),
    ...(skippedCandidates ?? []).map(({ candidate, credential, by, code }): Row => [
      "skipped",
      by === "cooldown"
        ? `${sanitize(candidate)} ${credential}: in cooldown (${code})`
        : `${sanitize(candidate)} ${credential}: ${code}, by ${by}`,
    ]),
  ];
}

/** Returns the rows of a request that is in the ledger but not in the request history. */
function ledgerRequestRows({
  clientRequest,
  key,
  keyName,
  account,
  labels,
  privacy,
  reservedAt,
}: LedgerAttempt): Row[] {
  return [
    ["started", formatTime(reservedAt)],
    ...(clientRequest
      ? [
          [
            "requested",
            `${sanitize(clientRequest.model)}${clientRequest.stream ? ", streaming" : ""}, ${clientRequest.frontend}`,
          ] as const,
        ]
      : []),
    [
      "client",
      [formatKey(key, keyName), ...(account ? [`account ${sanitize(account)}`] : [])].join(", "),
    ],
    ...labelRow(labels),
    ...(privacy && privacy !== "off" ? [["privacy", privacy] as const] : []),
  ];
}

type LedgerAttempt = FoundRequest["charges"][number];

/** Returns a row for each attempt, from the request history and the ledger. */
function attemptRows(seen: ShownRequest | undefined, charges: readonly ChargedAttempt[]): Row[] {
  const calls = seen && "frontend" in seen ? seen.calls : [];
  const rows = calls.flatMap((call): Row[] => [
    [
      `attempt ${call.n}`,
      [
        `${sanitize(call.provider)}/${sanitize(call.model)}, credential ${call.credential}`,
        call.protocol ?? "its own protocol",
        call.mode,
        ...(call.hedge ? ["hedge"] : []),
        call.fault ? paint("red", formatFault(call.fault)) : paint("green", "ok"),
      ].join(", "),
    ],
    ["", formatCallTimes(call.startMs, call.ms)],
    ...billRows(charges.find(({ n }) => n === call.n)),
  ]);
  const others = charges.filter(({ n }) => !calls.some((call) => call.n === n));
  return [
    ...rows,
    ...others.flatMap((charge): Row[] => [
      [
        `attempt ${charge.n}`,
        `${sanitize(charge.target.provider)}/${sanitize(charge.target.model)}, credential ${charge.target.credential}, ${charge.target.protocol ?? "its own protocol"}, ${charge.outcome}`,
      ],
      ...(charge.ms ? [["", formatCallTimes(undefined, charge.ms)] as const] : []),
      ...billRows(charge),
    ]),
  ];
}

type CallTimes = NonNullable<ChargedAttempt["ms"]>;

const formatCallTimes = (
  start: number | undefined,
  { headers, firstToken, total }: CallTimes,
): string =>
  [
    ...(start === undefined ? [] : [`started after ${formatDuration(start)}`]),
    ...(headers === undefined || headers === null ? [] : [`headers ${formatDuration(headers)}`]),
    ...(firstToken === undefined || firstToken === null
      ? []
      : [`first token ${formatDuration(firstToken)}`]),
    `total ${formatDuration(total)}`,
  ].join(", ");

function billRows(charge: ChargedAttempt | undefined): Row[] {
  if (!charge) return [];
  const { state, costNano, usage, holdNano, price, priceLines = [], adjustments } = charge;
  const cost = costNano === null ? "no known price" : formatUsd(BigInt(costNano));
  return [
    [
      "",
      `${inputTokens(usage)} in, ${outputTokens(usage)} out, ${cost}, ${state}${holdNano === null || holdNano === undefined ? "" : `, ${formatUsd(BigInt(holdNano))} reserved`}`,
    ],
    ...priceLines.map(({ unit, count, nano }): Row => [
      "",
      `  ${count} ${unit}: ${formatUsd(BigInt(nano))}`,
    ]),
    ...adjustments.map(({ at, costNano: by, reason }): Row => [
      "",
      `  ${formatUsd(BigInt(by ?? 0))} on ${formatTime(at)}: ${sanitize(reason ?? "")}`,
    ]),
    [
      "",
      [
        `rows ${charge.rowNumbers.join(", ")}`,
        ...(price ? [`price ${price.slice(0, 12)}`] : []),
        ...(charge.clientRequest?.policyBasis ? [sanitize(charge.clientRequest.policyBasis)] : []),
        ...(charge.upstreamId ? [`upstream ID ${sanitize(charge.upstreamId)}`] : []),
      ].join(", "),
    ],
  ];
}
