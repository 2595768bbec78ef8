// Mounts a provider's endpoints in a real gateway, once for each case, with their base URL set to
// the fake upstream.
import type { Operation } from "../../model/request.ts";
import { defineFrontend, defineProvider, type Definition } from "../../plugin/define.ts";
import type { ClientHalf, Protocol, ServerHalf } from "../../plugin/protocol.ts";
import type { ProtocolEndpoint } from "../../plugin/provider.ts";
import type { apiKeySchema, NoOptions } from "../../plugin/schema.ts";
import { startTestGateway, type TestGateway } from "../gateway.ts";
import type { Recording } from "../recording.ts";
import type { ConformanceSubject } from "./subject.ts";

/** One recording in one mode, in the gateway of `startCasesGateway`. */
export interface GatewayCase {
  readonly endpoint: ProtocolEndpoint;
  readonly client: ClientHalf<Operation>;
  readonly server: ServerHalf<Operation>;
  readonly recording: Recording;
  readonly stream: boolean;
  readonly mode: "passthrough" | "translated";
  /**
   * Index of its provider under `providers:`. Each case has a provider of its own, so that a
   * cooldown after one response affects no other case.
   */
  readonly providerIndex: number;
}

/**
 * Starts a gateway that has one provider for each case. The caller ends it. Rejects if the gateway
 * rejects its config.
 */
export function startCasesGateway(
  cases: readonly GatewayCase[],
  subject: ConformanceSubject,
  url: string,
): Promise<TestGateway> {
  const { fields, env } = credentialWithEnv(subject);
  const judged = defineProvider<NoOptions, typeof apiKeySchema>({
    api: 1,
    name: "judged",
    summary: "Test provider of the plugin test kit",
    ...("credential" in subject.definition && {
      credential: subject.definition.credential as typeof apiKeySchema,
    }),
    setup(_options, { id }) {
      const { endpoint } = cases[Number(id.split(".p").at(-1))]!;
      const base = `${url}/${id}${new URL(endpoint.base).pathname.replace(/\/+$/, "")}`;
      return {
        endpoints: [
          Object.assign(Object.create(endpoint) as ProtocolEndpoint, {
            ...endpoint,
            base,
            servesModel: () => true,
          }),
        ],
        listModels: async () => [
          { model: "model", operation: endpoint.protocol.operationSpec.name },
        ],
      };
    },
  });
  const frontends = [...new Set(cases.map(({ endpoint }) => endpoint.protocol))].flatMap(
    (protocol, i): [string, Definition][] =>
      (["passthrough", "translated"] as const).map((lane) => [
        `${lane}-${i}`,
        createFrontend(protocol, lane),
      ]),
  );
  return startTestGateway({
    plugins: { judged, ...Object.fromEntries(frontends) },
    env,
    yaml: [
      `frontends: ${JSON.stringify(frontends.map(([use]) => use))}`,
      "catalog: { refresh: 1h }",
      // Without retries, each response is checked as it was received.
      "retries: { per_target: 1, total: 1 }",
      "providers:",
      ...cases.map(
        ({ providerIndex }) =>
          `  p${providerIndex}: { use: judged${fields === undefined ? "" : `, with: ${JSON.stringify(fields)}`} }`,
      ),
    ].join("\n"),
  });
}

/**
 * Mounts the protocol under another ID for translated mode. The gateway then treats it as a
 * different protocol and translates the responses.
 */
function createFrontend(protocol: Protocol, lane: GatewayCase["mode"]): Definition {
  const spoken =
    lane === "passthrough" ? protocol : { ...protocol, id: `${protocol.id}-elsewhere` };
  return defineFrontend({
    api: 1,
    name: `${protocol.id}-${lane}`,
    summary: "Test frontend of the plugin test kit",
    setup: () => ({
      protocol: spoken,
      routes: [
        {
          method: "POST",
          path: `/${protocol.id}/${lane}`,
          actionType: "generate",
          body: "either",
          readInput: (x) => ({
            model: x.query.get("model") ?? "",
            stream: x.query.get("stream") === "true",
          }),
        },
      ],
    }),
  });
}

/**
 * Puts text fields into environment variables, as an operator would, and fills in fields that the
 * author did not provide.
 */
export function credentialWithEnv({ definition, credential }: ConformanceSubject): {
  fields: Readonly<Record<string, unknown>> | undefined;
  env: Record<string, string>;
} {
  const schema = "credential" in definition ? definition.credential : undefined;
  if (!schema) return { fields: undefined, env: {} };
  const env: Record<string, string> = {};
  const fields: Record<string, unknown> = { ...credential };
  for (const name of (schema["required"] ?? []) as readonly string[]) fields[name] ??= "kit-7f3a";
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value !== "string") continue;
    const variable = `KIT_${name.toUpperCase().replace(/\W/g, "_")}`;
    env[variable] = value;
    fields[name] = `\${env:${variable}}`;
  }
  return { fields, env };
}
