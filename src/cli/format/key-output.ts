// Prints API keys.
import type { ShownKey } from "../../admin/commands/key-commands.ts";
import { alignColumns, formatTime, paint, paintRemark, printRemark, print } from "./terminal.ts";
import { formatDecimal } from "../../money/decimal.ts";
import { fail } from "../../model/error.ts";
import type { ShownLimitUsage } from "../../admin/access/grants.ts";
import { LIMIT_SCHEMA, parseLimit } from "../../plugin/store/limit.ts";

/**
 * A key of the store or of gateway.yaml. A key of gateway.yaml has no creation time, but the plugin
 * that it belongs to.
 */
export type ListedKey = Omit<ShownKey, "created" | "version"> & {
  readonly created?: number;
  readonly from?: string;
};

export interface KeyResponse {
  readonly warnings?: readonly string[];
  readonly secret?: string;
  readonly key?: ShownKey;
  readonly keys?: readonly ListedKey[];
  /** Number of keys that existed already. */
  readonly existing?: number;
}

export function printWarnings(warnings: readonly string[] = []): void {
  for (const warning of warnings) printRemark(`${paintRemark("yellow", "warning")}  ${warning}`);
}

export function printKeys(what: string, of: KeyResponse): void {
  const { secret, key, keys = [], warnings, existing = 0 } = of;
  printWarnings(warnings);
  if (secret !== undefined && key) {
    // Only the secret is written to stdout, so that it can be piped.
    print(secret);
    printRemark(
      paintRemark(
        "gray",
        what === "rotate"
          ? `New secret of key ${key.id}. The secret is shown only once.`
          : `Key ${key.id} created. The secret is shown only once.`,
      ),
    );
    return;
  }
  if (what === "import") printRemark(`Imported ${keys.length} keys; ${existing} already existed.`);
  if (keys.length === 0) {
    if (what !== "import") printRemark("There are no keys. Create one with: tollgate keys create");
  } else if (what === "show" || what === "update") print(keys.map(formatKey).join("\n\n"));
  else print(formatKeyList(keys));
}

const formatKeyList = (keys: readonly ListedKey[]): string =>
  alignColumns([
    ["id", "name", "state", "created", "expires", "models", "remaining"].map((title) =>
      paint("gray", title),
    ),
    ...keys.map((each) => [
      each.id,
      each.name ?? "",
      formatState(each),
      each.created === undefined ? (each.from ?? "") : formatTime(each.created).slice(0, 10),
      formatExpiry(each),
      (each.models ?? ["all"]).join(", "),
      (each.limitUsage ?? []).map(formatLimitUsage).join(", "),
    ]),
  ]);

const formatState = ({ state }: Pick<ShownKey, "state">) =>
  paint(state === "valid" ? "green" : "red", state);
const formatExpiry = ({ revoked, expires }: Pick<ShownKey, "revoked" | "expires">) =>
  revoked !== undefined
    ? formatTime(revoked)
    : expires !== undefined
      ? formatTime(expires)
      : "never";

function formatKey(key: ListedKey): string {
  const rows: [string, string | undefined][] = [
    ["id", key.id],
    ["name", key.name],
    ["state", formatState(key)],
    ["created", key.created === undefined ? key.from : formatTime(key.created)],
    ["expires", formatExpiry(key)],
    ["models", (key.models ?? ["all"]).join(", ")],
    ["frontends", (key.frontends ?? ["everywhere"]).join(", ")],
    ["tools", key.tools?.join(", ")],
    ["privacy", key.privacy],
    ["account", key.account],
    ["limits", key.limits?.join(", ")],
    ...limitUsageRows(key.limitUsage),
    [
      "labels",
      Object.entries(key.labels ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
  ];
  return alignColumns(
    rows.flatMap(([name, value]) => (value ? [[paint("gray", name), value]] : [])),
  );
}

/** Returns a row for each limit, with its scope and its remaining amount. */
export const limitUsageRows = (counted: ShownKey["limitUsage"] = []): [string, string][] =>
  counted.map((each) => ["remaining", `${formatLimitUsage(each)}  ${paint("gray", each.scope)}`]);

// Parses limits, and formats their usage.

/** Returns the text if it is a limit. */
export const checkLimit = (text: string, flag: string): string =>
  parseLimit(text)
    ? text
    : fail("invalid", `Invalid --${flag} "${text}". It must be ${LIMIT_SCHEMA["x-expects"]}.`, {
        code: "usage",
      });

/** The usage of a limit as the control socket sends it, with amounts as decimal text. */
type ReceivedLimitUsage = Pick<ShownLimitUsage, "limit" | "unit" | "scope" | "resetsAt"> & {
  readonly [amount in "remaining" | "reserved"]: string | number | bigint;
};

/** Formats the usage of a limit: "usd=5/month: 4.2 left, 0.3 held, resets 2026-12-01 00:00". */
export function formatLimitUsage({
  limit,
  unit,
  remaining,
  reserved,
  resetsAt,
}: ReceivedLimitUsage): string {
  const amount = (of: ReceivedLimitUsage["remaining"]) =>
    unit === "nano_usd" ? formatDecimal(BigInt(of), 9) : `${of}`;
  const holding = BigInt(reserved) > 0n ? `, ${amount(reserved)} reserved` : "";
  const resets = /\/(?!total)/.test(limit) ? `, resets ${formatTime(resetsAt)}` : "";
  return `${limit}: ${amount(remaining)} left${holding}${resets}`;
}
