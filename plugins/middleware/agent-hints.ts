// Uses the hints that Claude Code sends about a request: its class, the type of the subagent, and
// compaction. They become labels of ledger rows, and can change the order of candidates. The
// vocabularies are fixed, so a client cannot create labels with arbitrary values.
import { defineMiddleware, type Candidate, type HeadersIn } from "tollgate/plugin";

const CLASSES = ["main", "subagent", "workflow", "compaction", "auxiliary"] as const;

const AGENT_TYPES = ["Explore", "Plan", "general-purpose", "custom", "teammate", "fork"] as const;

/** Values of each hint, by label. Any other value is recorded as `other`. */
const HINTS: readonly (readonly [label: string, header: string, values: readonly string[]])[] = [
  ["request_class", "x-claude-code-request-class", CLASSES],
  ["agent_type", "x-claude-code-agent-type", AGENT_TYPES],
  ["compaction", "x-claude-code-compaction", ["auto", "manual", "reactive"]],
];

export default defineMiddleware({
  api: 1,
  name: "agent-hints",
  summary: "Use the hints of coding agents for labels and routing",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      labels: {
        type: "boolean",
        default: true,
        description:
          "Whether ledger rows have the labels request_class, agent_type, and compaction",
      },
      prefer: {
        type: "object",
        propertyNames: { enum: [...CLASSES, ...AGENT_TYPES] },
        additionalProperties: {
          type: "array",
          items: { type: "string", minLength: 1 },
          minItems: 1,
        },
        default: {},
        description:
          "Models that are tried first, by request class or by type of the subagent. The type takes " +
          "precedence. Each * matches any text. Other candidates of the requested name follow",
      },
    },
  },
  setup({ labels, prefer }) {
    const preferred = new Map(
      Object.entries(prefer as Readonly<Record<string, readonly string[]>>).map(
        ([name, patterns]) => [name, patterns.map(toExpression)] as const,
      ),
    );
    return {
      ...(labels && { charge: ({ exchange }) => ({ labels: hintsIn(exchange.headers) }) }),
      ...(preferred.size > 0 && {
        route(candidates, { headers }) {
          const patterns =
            preferred.get(String(headers["x-claude-code-agent-type"])) ??
            preferred.get(String(headers["x-claude-code-request-class"]));
          if (!patterns) return candidates;
          const isPreferred = ({ id }: Candidate) => patterns.some((pattern) => pattern.test(id));
          return [
            ...candidates.filter(isPreferred),
            ...candidates.filter((candidate) => !isPreferred(candidate)),
          ];
        },
      }),
    };
  },
});

function hintsIn(headers: HeadersIn): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [label, header, values] of HINTS) {
    const value = headers[header];
    if (typeof value === "string") labels[label] = values.includes(value) ? value : "other";
  }
  return labels;
}

/** Creates the expression of a pattern in which each * matches any text. */
const toExpression = (pattern: string): RegExp =>
  new RegExp(`^${pattern.split("*").map(escapeText).join(".*")}$`, "s");

const escapeText = (text: string): string => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
