// Formats an alert as one sentence for a chat.
import type { Alert } from "./alert.ts";

const MESSAGES: { readonly [T in Alert["type"]]: (d: Record<string, string>) => string } = {
  "budget.threshold_reached": (d) =>
    `has used ${d["percent"]}% of ${d["limit"]}: ${d["used"]} so far`,
  "key.rejected": (d) => `requests are rejected: ${d["code"]}`,
  "provider.cooldown_started": (d) =>
    `is failing (${d["errorKind"]}) and is in cooldown until ${d["until"]}`,
  "credential.rejected": (d) => `rejected the credential ${d["credential"]} (${d["errorKind"]})`,
  "ledger.down": () => "does not accept writes, so new calls are rejected",
  "ledger.recovered": () => "accepts writes again",
  "reload.failed": (d) => `failed, and the previous config stays in use: ${d["reason"] ?? ""}`,
  "reload.recovered": (d) => `succeeded, config generation ${d["generation"]}`,
  "provider.cooldown_ended": () => "responds again",
  "credential.recovered": (d) => `accepts the credential ${d["credential"]} again`,
  "certificate.expires": (d) => `expires on ${d["date"]}`,
  "calls.unpriced": () => "is called but has no known price",
  "policy.expires": (d) => `has a data policy that must be reviewed again by ${d["date"]}`,
  "model.retires": (d) => `will be retired on ${d["date"]}`,
  "spend.unusual": (d) => `${d["usd"]} USD in this hour; the usual spend is ${d["usualUsd"]} USD`,
  "spend.digest": (d) =>
    `${d["usd"]} USD for ${d["calls"]} calls in the ${d["every"]} that began ${d["from"]}; ${d["beforeUsd"]} USD in the period before. ${d["models"]}`,
  "alerts.test": () => "this is a test",
};

/**
 * Formats the message. Slack's three control characters are escaped, so that a name cannot become a
 * link or a mention.
 */
export function formatChatMessage({ type, gateway, subject, runbook, data }: Alert): string {
  const said = MESSAGES[type](data as Record<string, string>);
  const see = runbook === undefined ? "" : ` (docs/${runbook})`;
  return escapeSlack(`[${gateway}] ${type} · ${subject}: ${said}${see}`);
}

const escapeSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
