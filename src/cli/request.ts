import type { BilledAttempt } from "../gateway/requests/billed.ts";
import type {
  FoundRequest,
  FoundRequests,
  ShownRequest,
} from "../gateway/control/request-commands.ts";
import { inputTokens, outputTokens } from "../model/usage.ts";
import { formatUsd } from "../money/format.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { clean, columns, moment, paint, remark, say, sayJson } from "./terminal.ts";
import { colourOf, faultWords, span } from "./request-words.ts";
import { storeDoor } from "./store.ts";

export const command: CliCommand = {
  usage: "request <id> [options]",
  about:
    "Says all that is known of one request: who asked for what, why which candidate was tried, each attempt with its times, what " +
    "hooks did, what was lost, what it cost and by which rows of the ledger. The id is that of the answer's x-request-id, the " +
    "client's own x-request-id, or that of an attempt. A running gateway remembers the last requests, refused ones too " +
    "(`remember` in gateway.yaml); of older ones there is what the ledger has. No prompt and no answer is kept anywhere. Exits " +
    "with 1 when there is no such request.",
  options: PLACE,
  words: { least: 1, most: 1 },
  examples: ["tollgate request 4RkzQGd0m0000f3", "tollgate request my-own-id --json"],
  async run(given) {
    await using door = await storeDoor(given);
    const [id = ""] = given.words;
    const found = (await door.ask("requests.show", { id })) as unknown as FoundRequests;
    if (given.json) {
      sayJson(found);
      return EXIT.fine;
    }
    say(found.requests.map(inWords).join("\n\n"));
    if (found.requests.some(({ seen }) => !seen))
      remark(
        found.since === undefined
          ? "No gateway runs: this is what the ledger has."
          : `Requests are remembered since ${moment(found.since)}: this is what the ledger has.`,
      );
    return EXIT.fine;
  },
};

type Row = readonly [name: string, value: string];
type Seen = Extract<ShownRequest, { frontend: string }>;

function inWords({ id, seen, charges }: FoundRequest): string {
  const [first] = charges;
  const rows: Row[] = [
    ["request", id],
    ...(seen ? seenRows(seen) : askedRows(first!)),
    ...attempts(seen, charges),
  ];
  return columns(rows.map(([name, value]) => [paint("gray", name), value]));
}

function seenRows(seen: ShownRequest): Row[] {
  if (!("frontend" in seen))
    return [
      ["over", moment(seen.at)],
      ["answer", `${paint("yellow", String(seen.status))} ${seen.code}, at the door`],
      ["door", seen.listener === "admin" ? "the admin listener" : "that of clients"],
      ...(seen.method ? [["method", seen.method] as const] : []),
    ];
  return [
    ...(seen.clientRequestId ? [["client's id", clean(seen.clientRequestId)] as const] : []),
    ["over", `${moment(seen.at)}, after ${span(seen.ms)}`],
    ["answer", answerOf(seen)],
    ["asked", askedOf(seen)],
    ["by", byOf(seen)],
    ...labelRow(seen.labels),
    ...privacyRows(seen),
    ...timeRows(seen),
    ...whyRows(seen),
    ...(seen.hooks ?? []).map(({ plugin, hook, did, ms }): Row => [
      "hook",
      `${plugin} ${hook}: ${did.replace("_", " ")}${ms === undefined ? "" : `, ${span(ms)}`}`,
    ]),
    ...Object.entries(seen.lossCodes).map(([code, n]): Row => ["lost", `${code} × ${n}`]),
  ];
}

function answerOf(seen: Seen): string {
  const { status, fault, finish, outcome, bytesOut, cached, lane } = seen;
  return [
    paint(colourOf(status, fault !== undefined), `${status} ${outcome.replace("_", " ")}`),
    ...(fault ? [faultWords(fault)] : []),
    ...(finish ? [finish] : []),
    `${bytesOut.toLocaleString("en")} bytes`,
    ...(lane ? [lane] : []),
    ...(cached ? ["from a recording"] : []),
  ].join(", ");
}

const askedOf = (seen: Seen): string =>
  [
    clean(seen.model) || "no model that could be read",
    ...(seen.alias && seen.alias !== seen.model ? [`alias ${seen.alias}`] : []),
    ...(seen.stream ? ["streamed"] : []),
    `${seen.method} ${clean(seen.route)} (${seen.frontend}, ${seen.name})`,
    `${seen.bytesIn.toLocaleString("en")} bytes`,
  ].join(", ");

const byOf = ({ key, keyName, account, generation, worker }: Seen): string =>
  [
    key === undefined ? "no key" : keyOf(key, keyName),
    ...(account ? [`account ${clean(account)}`] : []),
    `config ${generation}${worker > 0 ? `, worker ${worker}` : ""}`,
  ].join(", ");

const keyOf = (id: string, name: string | undefined): string =>
  name === undefined ? clean(id) : `${clean(name)} (${id})`;

const labelRow = (labels: Seen["labels"]): Row[] => {
  const said = Object.entries(labels).map(([name, value]) => clean(`${name}=${value}`));
  return said.length > 0 ? [["labels", said.join(", ")]] : [];
};

const privacyRows = ({ privacy, receipt }: Seen): Row[] =>
  privacy === "off" && !receipt
    ? []
    : [["privacy", [privacy, ...(receipt ? [clean(receipt)] : [])].join(", ")]];

const timeRows = ({ contentMs, ownMs }: Seen): Row[] => [
  [
    "times",
    [
      ...(contentMs === undefined ? [] : [`first content ${span(contentMs)}`]),
      `the gateway's own ${span(ownMs)}`,
    ].join(", "),
  ],
];

function whyRows(seen: Seen): Row[] {
  const { served, pinned, passedOver = [] } = seen;
  return [
    ...(served
      ? [["served by", `${clean(served)}${pinned ? ", which keeps its state" : ""}`] as const]
      : []),
    ...(passedOver ?? []).map(({ candidate, credential, by, code }): Row => [
      "passed over",
      by === "rest"
        ? `${clean(candidate)} ${credential}: in cooldown (${code})`
        : `${clean(candidate)} ${credential}: ${code}, by ${by}`,
    ]),
  ];
}

/** Of a request that only the ledger knows. */
function askedRows({
  asked,
  key,
  keyName,
  account,
  labels,
  privacy,
  reservedAt,
}: KnownAttempt): Row[] {
  return [
    ["begun", moment(reservedAt)],
    ...(asked
      ? [
          [
            "asked",
            `${clean(asked.model)}${asked.stream ? ", streamed" : ""}, ${asked.frontend}`,
          ] as const,
        ]
      : []),
    ["by", [keyOf(key, keyName), ...(account ? [`account ${clean(account)}`] : [])].join(", ")],
    ...labelRow(labels),
    ...(privacy && privacy !== "off" ? [["privacy", privacy] as const] : []),
  ];
}

type KnownAttempt = FoundRequest["charges"][number];

/** Each attempt, by what was seen of it and by what the ledger says. */
function attempts(seen: ShownRequest | undefined, charges: readonly BilledAttempt[]): Row[] {
  const calls = seen && "frontend" in seen ? seen.calls : [];
  const rows = calls.flatMap((call): Row[] => [
    [
      `attempt ${call.n}`,
      [
        `${clean(call.provider)}/${clean(call.model)}, credential ${call.credential}`,
        call.protocol ?? "its own wire",
        call.lane,
        ...(call.hedge ? ["hedge"] : []),
        call.fault ? paint("red", faultWords(call.fault)) : paint("green", "answered"),
      ].join(", "),
    ],
    ["", timesOf(call.startMs, call.ms)],
    ...billRows(charges.find(({ n }) => n === call.n)),
  ]);
  const others = charges.filter(({ n }) => !calls.some((call) => call.n === n));
  return [
    ...rows,
    ...others.flatMap((charge): Row[] => [
      [
        `attempt ${charge.n}`,
        `${clean(charge.target.provider)}/${clean(charge.target.model)}, credential ${charge.target.credential}, ${charge.target.protocol ?? "its own wire"}, ${charge.outcome}`,
      ],
      ...(charge.ms ? [["", timesOf(undefined, charge.ms)] as const] : []),
      ...billRows(charge),
    ]),
  ];
}

type CallTimes = NonNullable<BilledAttempt["ms"]>;

const timesOf = (start: number | undefined, { head, content, total }: CallTimes): string =>
  [
    ...(start === undefined ? [] : [`begun after ${span(start)}`]),
    ...(head === undefined || head === null ? [] : [`head ${span(head)}`]),
    ...(content === undefined || content === null ? [] : [`first content ${span(content)}`]),
    `all ${span(total)}`,
  ].join(", ");

function billRows(charge: BilledAttempt | undefined): Row[] {
  if (!charge) return [];
  const { state, costNano, usage, holdNano, price, lines = [], adjustments } = charge;
  const cost = costNano === null ? "no known price" : formatUsd(BigInt(costNano));
  return [
    [
      "",
      `${inputTokens(usage)} in, ${outputTokens(usage)} out, ${cost}, ${state}${
        holdNano === null || holdNano === undefined ? "" : `, ${formatUsd(BigInt(holdNano))} held`
      }`,
    ],
    ...lines.map(({ unit, count, nano }): Row => [
      "",
      `  ${count} ${unit}: ${formatUsd(BigInt(nano))}`,
    ]),
    ...adjustments.map(({ at, costNano: by, reason }): Row => [
      "",
      `  ${formatUsd(BigInt(by ?? 0))} on ${moment(at)}: ${clean(reason ?? "")}`,
    ]),
    [
      "",
      [
        `rows ${charge.rows.join(", ")}`,
        ...(price ? [`price ${price.slice(0, 12)}`] : []),
        ...(charge.asked?.basis ? [clean(charge.asked.basis)] : []),
        ...(charge.upstreamId ? [`upstream's id ${clean(charge.upstreamId)}`] : []),
      ].join(", "),
    ],
  ];
}
