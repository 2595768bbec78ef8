// Generates the OpenAPI 3.1 description of the API from the same schemas that validate commands.
// OpenAPI 3.1 schemas are JSON Schema.
import type { Schema } from "../../config/schema-dialect.ts";
import type { RegisteredCommand } from "../dispatch/command-dispatcher.ts";
import { API_PATH } from "../../runtime/access/principal.ts";
import { fail } from "../../model/error.ts";

const ERROR_SCHEMA = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "code"],
      properties: {
        message: { type: "string" },
        type: { type: "string" },
        code: { type: "string" },
        param: { type: ["string", "null"] },
        request_id: { type: "string" },
      },
    },
  },
} as const;

const jsonContent = (schema: unknown) => ({ "application/json": { schema: withoutCli(schema) } });

/** Returns the schema without the keyword of the command line. */
const withoutCli = (schema: unknown): unknown =>
  JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === "x-cli" ? undefined : value)),
  );

const RESPONSES = {
  "401": { description: "Missing, invalid, or expired token or session" },
  "403": { description: "Insufficient role, or access to another account" },
  default: {
    description: "Error",
    content: jsonContent({ $ref: "#/components/schemas/Error" }),
  },
} as const;

export function createOpenApi(commands: readonly RegisteredCommand[]) {
  const paths = Object.fromEntries(
    commands.map((command) => [
      commandPathOf(command.name),
      Object.fromEntries(
        commandMethodsOf(command).map((method) => [
          method.toLowerCase(),
          operation(command, method),
        ]),
      ),
    ]),
  );
  return {
    openapi: "3.1.0",
    info: { title: "Tollgate admin API", version: "v1" },
    servers: [{ url: "/" }],
    security: [{ token: [] }, { session: [] }],
    paths: { [API_PATH]: { get: LIST_OPERATION }, ...paths },
    components: {
      schemas: { Error: ERROR_SCHEMA },
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: "tollgate" },
      },
    },
  };
}

const LIST_OPERATION = {
  operationId: "commands",
  summary: "List the available commands",
  responses: {
    "200": {
      description: "Commands with their schemas",
      content: jsonContent({
        type: "object",
        required: ["commands"],
        properties: { commands: { type: "array", items: { type: "object" } } },
      }),
    },
    ...RESPONSES,
  },
};

function operation({ name, spec }: RegisteredCommand, method: string) {
  const { summary, input, output, role } = spec;
  const reads = method === "GET";
  return {
    operationId: `${name}${reads ? "" : ".post"}`,
    summary,
    description: `Requires the role ${role} or a higher one.`,
    tags: [name.split(/[./]/, 1)[0]!],
    ...(reads
      ? { parameters: queryParametersOf(input as Schema) }
      : {
          parameters: spec.writes ? WRITE_PARAMETERS : [],
          requestBody: { required: true, content: jsonContent(input) },
        }),
    responses: {
      "200": { description: "Result of the command", content: jsonContent(output) },
      ...RESPONSES,
    },
  };
}

const WRITE_PARAMETERS = [
  {
    name: "If-Match",
    in: "header",
    schema: { type: "string" },
    description: "ETag of a previous read. The command runs only if the object is unchanged",
  },
  {
    name: "Idempotency-Key",
    in: "header",
    schema: { type: "string", maxLength: 255 },
    description:
      "Unique key of the request. A retry with the same key within 10 minutes does not " +
      "run the command again",
  },
];

function queryParametersOf(input: Schema) {
  const required = (input["required"] ?? []) as readonly string[];
  const properties = Object.entries((input["properties"] ?? {}) as Record<string, Schema>);
  return properties.map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema: withoutCli(schema),
    ...(schema["type"] === "array" && { style: "form", explode: false }),
    ...(schema["type"] === "object" && { style: "form", explode: true }),
  }));
}

// The path and the methods of each command in the admin API.

/** A command that does not change data can also be called with GET. */
export const commandMethodsOf = ({ spec }: Pick<RegisteredCommand, "spec">): readonly string[] =>
  spec.writes ? ["POST"] : ["GET", "POST"];

/** The slash in the name of a plugin's command ("store/head") is kept in the path. */
export const commandPathOf = (name: string): string =>
  `${API_PATH}/${name.split("/").map(encodeURIComponent).join("/")}`;

export function commandNameIn(path: string): string {
  try {
    return decodeURIComponent(path.slice(API_PATH.length + 1));
  } catch {
    return fail("invalid", "Invalid percent-encoding in the path.", { code: "bad_path" });
  }
}
