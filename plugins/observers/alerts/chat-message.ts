// Formats an alert as one sentence for a chat.
import type { Alert } from "./alert.ts";

const MESSAGES: { readonly [T in Alert["type"]]: (d: Record<string, string>) => string } = {
  "budget.threshold_reached": (d) =>
    `has used ${d["percent"]}% of ${d["limit"]}: ${d["used"]} so far`,
  "key.rejected": (d) => `requests are refused: ${d["code"]}`,
  "provider.cooldown_started": (d) =>
    `fails (${d["errorKind"]}) and is tried last until ${d["until"]}`,
  "credential.rejected": (d) => `refuses our credential ${d["credential"]} (${d["errorKind"]})`,
  "ledger.down": () => "takes no rows, and new calls are refused",
  "ledger.recovered": () => "accepts rows again",
  "reload.failed": (d) => `was refused, and the config before stays in use: ${d["reason"] ?? ""}`,
  "reload.recovered": (d) => `is in use again, generation ${d["generation"]}`,
  "provider.cooldown_ended": () => "responds again",
  "credential.recovered": (d) => `accepts the credential ${d["credential"]} again`,
  "certificate.expires": (d) => `expires on ${d["date"]}`,
  "calls.unpriced": () => "is asked and has no known price",
  "policy.expires": (d) => `what is known of its data policy ends on ${d["date"]}`,
  "model.retires": (d) => `retires on ${d["date"]}`,
  "spend.unusual": (d) => `${d["usd"]} USD in this hour; usually it is ${d["usualUsd"]}`,
  "spend.digest": (d) =>
    `${d["usd"]} USD for ${d["calls"]} calls in the ${d["every"]} from ${d["from"]} on; ${d["beforeUsd"]} in the one before. ${d["models"]}`,
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
