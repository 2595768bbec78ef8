// Bars that show the usage of limits, and the form field for limits. Each bar shows the unit, the
// used and reserved amounts, and the time of the reset. Limits are written as texts such as
// usd=300/month.
import { html } from "htm/preact";
import { limitTitle } from "./account-text.ts";
import { TextField } from "./parts/fields.ts";
import { UsageBar } from "./parts/basics.ts";
import { formatDistance, formatCompact, formatDateTime, formatUsd } from "./format.ts";

/** A limit with its use. `max`, `used`, `reserved`, and `remaining` are in `unit`. */
export interface UsedLimit {
  readonly scope?: string;
  readonly limit: string;
  readonly unit: string;
  readonly max: string | number;
  readonly used: string | number;
  readonly reserved: string | number;
  readonly remaining: string | number;
  readonly resetsAt: number;
}

/** "$1.20", "340". */
export const amountOf = (unit: string, of: string | number): string =>
  unit === "nano_usd" ? formatUsd(of) : formatCompact(Number(of));

/**
 * Returns the account's name: "account:web" → "web". Undefined if the limit belongs to the account
 * that is shown.
 */
const accountOfScope = (scope: string | undefined, own: string | undefined): string | undefined => {
  const [, account] = /^account:(.*)$/.exec(scope ?? "") ?? [];
  return account === own ? undefined : account;
};

/**
 * A bar of one limit. `limit` is a string if the store cannot report its use. `own` is the account
 * that the bars are shown for.
 */
export function LimitBar({ limit, own }: { limit: UsedLimit | string; own?: string }) {
  if (typeof limit === "string")
    return html`<div class="small limit">
      <span class="strong">${limitTitle(limit)}</span> <code>${limit}</code>
    </div>`;
  const { unit, resetsAt } = limit;
  const max = Number(limit.max);
  const account = accountOfScope(limit.scope, own);
  const name = `${account === undefined ? "" : `Account ${account}: `}${limitTitle(limit.limit)}`;
  const [used, held] = [Number(limit.used), Number(limit.reserved)];
  const share = max === 0 ? 1 : used / max;
  const usageText = `${amountOf(unit, limit.used)} of ${amountOf(unit, max)}`;
  const resets = /\/(?!total)/.test(limit.limit) ? `Resets in ${formatDistance(resetsAt)}` : "";
  return html`<div class="stack tight limit">
    <div class="row small">
      <span class="grow strong">${name}</span>
      <span class="nowrap">${usageText}</span>
    </div>
    <${UsageBar} of=${share} held=${max === 0 ? 0 : held / max} label=${`${name}: ${usageText}`} />
    ${
      (held > 0 || resets) &&
      html`<div class="row small faint">
        <span class="grow">${held > 0 ? `${amountOf(unit, held)} reserved` : ""}</span>
        ${resets && html`<span class="nowrap" title=${formatDateTime(resetsAt)}>${resets}</span>`}
      </div>`
    }
  </div>`;
}

export const LimitField = ({
  name = "Limits and budgets",
  value,
  set,
}: {
  name?: string;
  value: string;
  set: (to: string) => void;
}) =>
  html`<${TextField}
    name=${name}
    value=${value}
    set=${set}
    placeholder="usd=25/month, requests=60/minute"
    hint="For example usd=25/month, tokens=1000000/day, or concurrent=5, separated by commas. Leave empty for no limits."
  />`;
