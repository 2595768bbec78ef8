// An OpenAPI document as a server of tools: selection, schemas, bounds, results, and errors with their position.
import { describe, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import {
  createOpenApiServer,
  type OpenApiOptions,
} from "../../../../plugins/frontends/mcp/openapi/server.ts";
import { hashTool } from "../../../../plugins/frontends/mcp/list-entries.ts";
import type { ServerCaller } from "../../../../plugins/frontends/mcp/tool-server.ts";

const YAML = `openapi: 3.0.3
info: { title: Billing, version: "1" }
paths:
  /invoices:
    get:
      operationId: listInvoices
      tags: [invoices]
      summary: List invoices
      parameters:
        - { name: "filter[state]", in: query, schema: { type: string, nullable: true, enum: [open, paid] } }
        - { name: Authorization, in: header, schema: { type: string } }
    post:
      operationId: createInvoice
      tags: [invoices]
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: "#/components/schemas/Invoice" } }
  /invoices/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: string } }
    get: { operationId: getInvoice, tags: [invoices] }
    delete: { operationId: deleteInvoice, tags: [danger] }
  /files:
    post:
      operationId: upload
      requestBody: { content: { multipart/form-data: { schema: { type: object } } } }
components:
  schemas:
    Invoice:
      type: object
      required: [id, total]
      properties:
        id: { type: string, readOnly: true }
        total: { type: number, minimum: 0, exclusiveMinimum: true }
        parts: { type: array, items: { $ref: "#/components/schemas/Invoice" } }
`;

interface Sent {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
}

async function server(
  openapi: Partial<OpenApiOptions>,
  respond: (sent: Sent) => Response = () => Response.json({ ok: true }),
  document = YAML,
) {
  const sent: Sent[] = [];
  const built = await createOpenApiServer(
    {
      readFile: async () => Buffer.from(document),
      fetch: async (url, init) => {
        const request = {
          url: String(url),
          method: "GET",
          headers: {},
          ...init,
        } as unknown as Sent;
        sent.push(request);
        return respond(request);
      },
    },
    {
      name: "billing",
      url: "https://api.example.com/v1",
      timeoutMs: 1_000,
      openapi: { document: "billing.yaml", max_response_bytes: 1_000, ...openapi },
    },
  );
  const caller: ServerCaller = {
    credential: { headers: { authorization: "Bearer ours" }, owner: "shared" },
    partition: "p",
    capabilities: {},
    signal: new AbortController().signal,
  };
  const call = (name: string, input: JsonObject) =>
    built.request(
      {
        method: "tools/call",
        params: { name, arguments: input },
        onNotification() {},
        askClient: async () => ({}),
      },
      caller,
    );
  return {
    sent,
    built,
    caller,
    call,
    list: async () =>
      (await built.list("tools", caller)).items as readonly {
        name: string;
        inputSchema: JsonObject;
        annotations: JsonObject;
      }[],
  };
}

const tools = ["tag:invoices"];

describe("tools of an OpenAPI document", () => {
  it("are the selected operations, in the order of the document", async () => {
    const names = async (of: Partial<OpenApiOptions>) =>
      (await (await server(of)).list()).map(({ name }) => name);
    expect(await names({ operations: tools })).toEqual([
      "listInvoices",
      "createInvoice",
      "getInvoice",
    ]);
    expect(await names({ operations: ["GET /invoices*"] })).toEqual(["listInvoices", "getInvoice"]);
    expect(await names({ exclude: ["upload", "delete*"] })).toEqual([
      "listInvoices",
      "createInvoice",
      "getInvoice",
    ]);
  });

  it("have schemas without references, circles, and read-only properties", async () => {
    const [list, create] = await (await server({ operations: tools })).list();
    expect(list!.inputSchema).toEqual({
      type: "object",
      additionalProperties: false,
      properties: { filter_state: { type: ["string", "null"], enum: ["open", "paid", null] } },
    });
    expect(create!.inputSchema).toEqual({
      type: "object",
      additionalProperties: false,
      required: ["body"],
      properties: {
        body: {
          type: "object",
          required: ["total"],
          properties: {
            total: { type: "number", exclusiveMinimum: 0 },
            parts: { type: "array", items: { description: "Nested Invoice, of the same form" } },
          },
        },
      },
    });
    expect(list!.annotations).toMatchObject({ readOnlyHint: true, title: "List invoices" });
    expect(create!.annotations).toMatchObject({ readOnlyHint: false, idempotentHint: false });
  });

  it("are called with the gateway's credential only", async () => {
    const { call, sent } = await server({ operations: tools });
    await call("listInvoices", { filter_state: "paid" });
    await call("createInvoice", { body: { total: 3 } });
    expect(sent).toMatchObject([
      {
        url: "https://api.example.com/v1/invoices?filter%5Bstate%5D=paid",
        method: "GET",
        headers: { authorization: "Bearer ours" },
      },
      {
        url: "https://api.example.com/v1/invoices",
        method: "POST",
        body: '{"total":3}',
        headers: { "content-type": "application/json" },
      },
    ]);
  });

  it("never leave the described path", async () => {
    const { call, sent } = await server({ operations: tools });
    for (const id of ["..", ".", ""])
      expect(await call("getInvoice", { id })).toMatchObject({ isError: true });
    expect(sent).toEqual([]);
    await call("getInvoice", { id: "../../admin?x=1#y" });
    await call("getInvoice", { id: "@evil.example" });
    expect(sent.map(({ url }) => url)).toEqual([
      "https://api.example.com/v1/invoices/..%2F..%2Fadmin%3Fx%3D1%23y",
      "https://api.example.com/v1/invoices/%40evil.example",
    ]);
  });

  it("reject values that their style cannot express", async () => {
    const parameters =
      "[{ name: a, in: query, style: pipeDelimited, explode: false, schema: { type: array } }]";
    const document = `openapi: 3.1.0\npaths:\n  /a:\n    get: { operationId: a, parameters: ${parameters} }\n`;
    const { call, sent } = await server({}, undefined, document);
    expect(await call("a", { a: ["b", "c|d"] })).toMatchObject({
      isError: true,
      content: [{ text: 'A value of the argument "a" contains "|", which separates the values.' }],
    });
    await call("a", { a: ["b", "c d"] });
    expect(sent.map(({ url }) => url)).toEqual(["https://api.example.com/v1/a?a=b%7Cc%20d"]);
  });

  it("report wrong arguments to the model", async () => {
    const { call, sent } = await server({ operations: tools });
    const message = async (name: string, input: JsonObject) =>
      ((await call(name, input)) as { content: { text: string }[] }).content[0]!.text;
    expect(await message("getInvoice", {})).toBe('The argument "id" is missing.');
    expect(await message("getInvoice", { id: "1", x: 1 })).toBe(
      'Unknown argument "x". The arguments are id.',
    );
    expect(await message("getInvoice", { id: [[1]] })).toContain("nested too deeply");
    expect(sent).toEqual([]);
    await expect(call("deleteInvoice", { id: "1" })).rejects.toMatchObject({
      code: -32_602,
      progress: "unsent",
    });
  });
});

describe("the result of a tool", () => {
  const result = async (response: Response) =>
    (await server({ operations: tools }, () => response)).call("getInvoice", { id: "1" });

  it("contains JSON as text and as an object", async () => {
    expect(await result(Response.json({ id: 1 }))).toEqual({
      content: [{ type: "text", text: '{"id":1}' }],
      structuredContent: { id: 1 },
    });
    expect(await result(Response.json([1]))).toEqual({ content: [{ type: "text", text: "[1]" }] });
    expect(await result(new Response(null, { status: 204 }))).toEqual({
      content: [{ type: "text", text: "The API responded with status 204." }],
    });
    expect(
      await result(
        new Response(new Uint8Array([1, 2]), { headers: { "content-type": "image/png" } }),
      ),
    ).toEqual({ content: [{ type: "image", data: "AQI=", mimeType: "image/png" }] });
  });

  it("is an error if the API fails, responds with too much, or redirects", async () => {
    expect(await result(Response.json({ message: "no such invoice" }, { status: 404 }))).toEqual({
      isError: true,
      content: [
        { type: "text", text: 'The API responded with status 404.\n{"message":"no such invoice"}' },
      ],
    });
    expect(
      await result(new Response("x".repeat(1_001), { headers: { "content-type": "text/plain" } })),
    ).toMatchObject({ isError: true });
    expect(
      await result(
        new Response(null, { status: 302, headers: { location: "http://169.254.169.254/" } }),
      ),
    ).toMatchObject({ isError: true });
    expect(
      await result(new Response("x", { headers: { "content-type": "application/pdf" } })),
    ).toMatchObject({ isError: true });
  });

  it("is the challenge of the API if it rejects the credential", async () => {
    await expect(
      result(
        new Response("", { status: 401, headers: { "www-authenticate": 'Bearer scope="a"' } }),
      ),
    ).rejects.toMatchObject({ challenge: 'Bearer scope="a"', progress: "rejected" });
  });
});

describe("an error of a document", () => {
  const message = (of: Partial<OpenApiOptions>, document?: string) =>
    server(of, undefined, document).then(
      () => "none",
      (error: Error) => error.message,
    );

  it("names the nearest selector", async () => {
    expect(await message({ operations: ["listInvoice"] })).toBe(
      'server "billing": no operation matches "listInvoice"; did you mean "listInvoices"?',
    );
    expect(await message({ operations: ["tag:invoice"] })).toContain(
      'did you mean "tag:invoices"?',
    );
    expect(await message({ operations: ["GET /invoice"] })).toContain(
      'did you mean "GET /invoices"?',
    );
  });

  it("names the file, line, and column", async () => {
    expect(await message({})).toBe(
      'server "billing": billing.yaml:27:22: the body must be JSON, a URL-encoded form, or text, not multipart/form-data; leave the operation out with `exclude`',
    );
    expect(
      await message({}, "openapi: 3.1.0\npaths:\n  /a/{id}:\n    get: { operationId: a }\n"),
    ).toContain('billing.yaml:4:5: no path parameter describes "{id}" of /a/{id}');
    expect(
      await message(
        {},
        'openapi: 3.1.0\npaths:\n  /a:\n    get:\n      parameters:\n        - $ref: "other.yaml#/x"\n',
      ),
    ).toContain("billing.yaml:6:11: ");
    expect(
      await message(
        {},
        '{"openapi": "3.1.0",\n "paths": {"/a": {"get": {"parameters": [{"$ref": "#/b"}]}}},\n "b": {"$ref": "#/b"}}',
      ),
    ).toContain("circle");
    expect(await message({}, "a: [")).toContain("billing.yaml:1:5: ");
    expect(await message({}, "swagger: '2.0'")).toContain("Swagger 2.0 is not supported");
  });

  it("is thrown for a schema that is too large", async () => {
    const deep = "{ type: array, items: ".repeat(40) + "{}" + " }".repeat(40);
    const wide = `{ type: object, properties: { ${Array.from({ length: 2_100 }, (_, i) => `p${i}: {}`).join(", ")} } }`;
    for (const [schema, reason] of [
      [deep, "nested more than 32 levels"],
      [wide, "more than 2000 schemas"],
    ] as const)
      expect(
        await message(
          {},
          `openapi: 3.1.0\npaths:\n  /a:\n    post: { requestBody: { content: { application/json: { schema: ${schema} } } } }\n`,
        ),
      ).toContain(reason);
  });
});

describe("a document from a URL", () => {
  it("is requested when it is needed, and a failure is not cached", async () => {
    let fails = true;
    const { list, sent } = await server(
      {
        document: undefined as never,
        document_url: "https://api.example.com/openapi.yaml",
        operations: tools,
      },
      () => (fails ? new Response("", { status: 503 }) : new Response(YAML)),
    );
    expect(sent).toEqual([]);
    await expect(list()).rejects.toThrow("status 503");
    fails = false;
    expect(await list()).toHaveLength(3);
    expect(await list()).toHaveLength(3);
    expect(sent).toHaveLength(2);
  });
});

it("the hash of a tool covers the request that a call sends", async () => {
  const pets = (path: string, method: string, place = "query") => `openapi: 3.0.3
info: { title: Pets, version: "1" }
paths:
  ${path}:
    ${method}:
      operationId: find
      description: Finds pets.
      parameters: [{ name: kind, in: ${place}, schema: { type: string } }]
`;
  const hashOf = async (document: string) => {
    const { built, caller } = await server({}, undefined, document);
    const { items, bindings } = await built.list("tools", caller);
    return hashTool(items[0]!, bindings!.get("find"));
  };
  const before = await hashOf(pets("/pets", "get"));
  expect(await hashOf(pets("/pets", "get"))).toBe(before);
  for (const changed of [
    pets("/admin/pets", "get"),
    pets("/pets", "head"),
    pets("/pets", "get", "header"),
  ])
    expect(await hashOf(changed)).not.toBe(before);
});
