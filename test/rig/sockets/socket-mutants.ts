// Planted defects of the billing of WebSockets. Each one must be found by the rig.
import type { ChangedSource } from "../mutants/changed-source.ts";
import type { PlanFilter } from "./plans.ts";

interface SocketMutant {
  readonly change: ChangedSource;
  /** The cuts that show the defect. A test plays only these. */
  readonly only?: PlanFilter;
  readonly found: RegExp;
}

export const MUTANTS = {
  // Responses that the provider cuts are not settled.
  unsettled: {
    change: {
      in: "pipeline/sockets/relay-session.ts",
      line: "for (const response of this.#open) response.cut(fault);",
      instead:
        "if (fault !== PROVIDER_GONE) for (const response of this.#open) response.cut(fault);",
    },
    only: { by: ["provider-close", "provider-reset"], ending: "drain" },
    found: /is left open|recovered without a kill|never closed/,
  },
  // A response that the client asked for begins a second time when the provider names it.
  doubled: {
    change: {
      in: "protocols/realtime/responses.ts",
      line: "const response = requested?.response ?? begin();",
      instead: "const response = begin();",
    },
    only: { by: ["slow"], ending: "drain" },
    found: /\d+ responses, and \d+ (?:are billed|rows)/,
  },
  // The request for a response is forwarded before its reservation is durable.
  "late-reserve": {
    change: {
      in: "pipeline/sockets/relayed-response.ts",
      line: "await reserveCall(this.#call, null, this.#tally);",
      instead:
        "setTimeout(() => void reserveCall(this.#call, null, this.#tally).catch(() => {}), 500);",
    },
    only: { by: ["slow"], ending: "kill" },
    found: /\d+ responses, and \d+ are billed|without an exact row/,
  },
  // The end of a response is forwarded before its row is durable.
  "early-end": {
    change: {
      in: "pipeline/sockets/relayed-response.ts",
      line: "await waitForRow(end());",
      instead: "await new Promise(setImmediate); setTimeout(end, 500);",
    },
    only: { by: ["slow"], ending: "kill" },
    found: /without an exact row/,
  },
  // A response that was cut before the provider named it costs nothing.
  "free-cut": {
    change: {
      in: "pipeline/sockets/relayed-response.ts",
      line: "this.#tally.isAccepted ||= this.isSent;",
      instead: "",
    },
    only: { by: ["provider-deaf"], ending: "drain" },
    found: /\d+ responses, and \d+ are billed/,
  },
  // The estimate of what was relayed is forgotten.
  "no-estimate": {
    change: {
      in: "pipeline/sockets/relayed-response.ts",
      line: "this.#tally.observedUsage = usage;",
      instead: "void usage;",
    },
    only: { by: ["provider-reset", "client-reset"], ending: "drain" },
    found: /the client received \d+ tokens, and \d+ are billed|costs/,
  },
  // A provider's report is not read.
  "no-report": {
    change: {
      in: "pipeline/sockets/relayed-response.ts",
      line: "this.#tally.addReport(seen);",
      instead: "void seen;",
    },
    only: { by: ["slow"], ending: "drain" },
    found: /without an exact row/,
  },
  // A response that the provider began and a budget refused has no row.
  "free-refusal": {
    change: {
      in: "pipeline/sockets/relayed-response.ts",
      line: "await reserveCall(this.#call, null, this.#tally, { isRunning: true })",
      instead: "await Promise.resolve()",
    },
    only: { by: ["budget"], ending: "drain", protocol: "realtime" },
    found: /\d+ responses, and \d+ are billed|settled without a reserve|without an exact row/,
  },
  // The sockets of a revoked key stay open.
  revocable: {
    change: {
      in: "runtime/sockets/open-sockets.ts",
      line: "if (fault) of.closeWith(fault, CLOSE_CODES.policy);",
      instead: "void fault;",
    },
    only: { by: ["revoke"], ending: "drain" },
    found: /revoked, and closed with|after the revocation/,
  },
  // A drain does not wait for what runs.
  hasty: {
    change: {
      in: "runtime/sockets/relay-connection.ts",
      line: "if (this.isBusy || this.socket.isClosing) return;",
      instead: "if (this.socket.isClosing) return;",
    },
    only: { by: ["slow"], ending: "drain" },
    found: /cut by the drain/,
  },
  // A request over a free connection of the provider is sent over a new one too.
  "sent-twice": {
    change: {
      in: "pipeline/upstream/send-over-socket.ts",
      line: "return response.needsNewConnection ? undefined : response;",
      instead: "return undefined;",
    },
    only: { by: ["slow"], ending: "drain", protocol: "pooled" },
    found: /\d+ responses, and \d+ are billed/,
  },
  // The usage of Gemini Live counts only what is said.
  "half-live": {
    change: {
      in: "protocols/gemini-live/meter.ts",
      line: 'open.response.reportUsage({ type: "usage", usage });',
      instead: 'open.response.reportUsage({ type: "usage", usage: { ...usage, input: 0 } });',
    },
    only: { by: ["slow"], ending: "drain" },
    found: /without an exact row/,
  },
} as const satisfies Record<string, SocketMutant>;
