import { startUpstream, jsonResponse } from "tollgate/testing";
import { expect, test } from "vitest";
import { createTestFolder, MINIMAL_CONFIG } from "../kit/process/command-line.ts";

const DAY_MS = 86_400_000;
const soon = new Date(Date.now() + 20 * DAY_MS).toISOString().slice(0, 10);

const listed = (...ids: string[]) =>
  jsonResponse({ data: ids.map((id) => ({ id, context_length: 64_000 })) }, 200);

const yaml = (url: string) =>
  MINIMAL_CONFIG.replace("models]", "models, images]")
    .replace("[auth]", "[{ use: auth, with: { anonymous: true } }]")
    .replace(
      "  demo: { use: demo }\n",
      `  demo: { use: demo }
  openai:
    use: openai
    with: { api_key: sk-0123456789, base_url: "${url}/v1" }
    models:
      gpt-5: { price: { input: "2.5", output: "10" }, retires: "${soon}" }
  bfl: { use: bfl, with: { api_key: k } }
models:
  fast: [openai/gpt-5, demo/echo]
`,
    );

test("models: lists the models of the file if no gateway is running", async () => {
  await using here = await createTestFolder({ "gateway.yaml": yaml("http://127.0.0.1:1") });
  const list = await here.tollgate(["models"]);
  expect(list.code).toBe(0);
  expect(list.err).toContain("No gateway is running");
  expect(list.out).toMatch(/^model +operation +context +price per million tokens +retires\n/);
  expect(list.out).toMatch(/\nfast +chat +price of the served model\n/);
  expect(list.out).toMatch(/\ndemo\/echo +chat +200,000 +free\n/);
  expect(list.out).toMatch(
    new RegExp(`\\nopenai/gpt-5 +chat +400,000 +\\$2\\.50 in, \\$10 out +${soon}\\n`),
  );
  expect(list.out).toMatch(/\nbfl\/flux-pro-1\.1 +image +\$0\.04 per image\n/);

  const images = await here.tollgate(["models", "list", "--operation", "image", "--json"]);
  const { models } = JSON.parse(images.out) as { models: { id: string; operation: string }[] };
  expect(models.map(({ id }) => id)).toContain("demo/image");
  expect(new Set(models.map(({ operation }) => operation))).toEqual(new Set(["image"]));

  const refresh = await here.tollgate(["models", "refresh"]);
  expect(refresh.code).toBe(1);
  expect(refresh.err).toMatch(/No gateway is running at .*\.tollgate.*tollgate serve/);
});

test("models explain: shows each source, the price, and the expiry date", async () => {
  await using here = await createTestFolder({ "gateway.yaml": yaml("http://127.0.0.1:1") });
  const words = await here.tollgate(["models", "explain", "openai/gpt-5"]);
  expect(words.code).toBe(0);
  expect(words.out).toMatch(/\n {2}price +gateway\.yaml +\$2\.50 in, \$10 out; token prices are/);
  expect(words.out).toMatch(/\n {2}limits\.context +built-in, \d{4}-\d\d-\d\d +400,000\n/);
  expect(words.out).toMatch(
    /example cost +10,000 tokens in, 1,000 out: \$0\.035 \(10,000 input \$0\.025 \+ 1,000 output \$0\.01\)/,
  );
  expect(words.out).toMatch(new RegExp(`retires +${soon}, in 20 days`));

  const picture = await here.tollgate(["models", "explain", "bfl/flux-pro-1.1", "--json"]);
  expect(JSON.parse(picture.out)).toMatchObject({
    name: "bfl/flux-pro-1.1",
    models: [
      {
        operation: "image",
        listed: true,
        example: { description: "one image", usd: "0.04", lines: [{ unit: "images", count: 1 }] },
      },
    ],
  });

  const alias = await here.tollgate(["models", "explain", "fast"]);
  expect(alias.out).toContain("fast is an alias of openai/gpt-5, then demo/echo");

  const typo = await here.tollgate(["models", "explain", "demo/ehco"]);
  expect(typo.code).toBe(1);
  expect(typo.out).toMatch(/not in any model list.*forwarded as chat[\s\S]*unpriced/);
  expect(typo.out).toContain("Similar names: demo/echo");
  const image = await here.tollgate(["models", "explain", "openai/gpt-image-2"]);
  expect(image.out).toContain("rejected until a list has it");
  const nobody = await here.tollgate(["models", "explain", "nobody/x"]);
  expect([nobody.code, nobody.out]).toEqual([1, ""]);
  expect(nobody.err).toContain("Model nobody/x not found");
  for (const args of [["explian"], ["explain"], ["list", "x"], ["--operation", "sound"]])
    expect((await here.tollgate(["models", ...args])).code).toBe(1);
});

test("models: uses live lists of a running gateway first, and refreshes them on request", async () => {
  await using up = await startUpstream({ "GET /v1/models": listed("gpt-5", "gpt-image-2") });
  await using here = await createTestFolder({ "gateway.yaml": yaml(up.url) });
  await using other = await createTestFolder();
  const gateway = await here.serve();
  const fresh = await here.tollgate(["models", "refresh", "openai"]);
  expect([fresh.code, fresh.out]).toEqual([
    0,
    expect.stringMatching(/^openai +default +2 models +updated 20.* fresh\n$/),
  ]);
  const state = ["--state-dir", `${here.path}/.tollgate`];
  const explained = await other.tollgate(["models", "explain", "openai/gpt-5", "--json", ...state]);
  expect(explained.err).toBe("");
  const { models } = JSON.parse(explained.out) as {
    models: { facts: { field: string; value: unknown; source: object }[] }[];
  };
  const fact = (field: string) => models[0]!.facts.find((f) => f.field === field);
  expect(fact("limits.context")).toMatchObject({
    value: 64_000,
    source: { from: "live", credential: "default", at: expect.stringMatching(/^20/) },
  });
  expect(fact("price")).toMatchObject({ source: { from: "operator" } });
  expect(fact("limits.output")).toMatchObject({ source: { from: "shipped" } });
  expect((await other.tollgate(["models", ...state])).out).toContain("openai/gpt-image-2");

  await fetch(`${gateway.url}/v1/images/generations`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "demo/image",
      prompt: "x",
      size: "16x16",
      response_format: "url",
    }),
  });
  const status = await here.tollgate(["status"]);
  expect(status.out).toMatch(/\nmodels of openai +2\n/);
  const { modelLists } = JSON.parse((await here.tollgate(["status", "--json"])).out) as {
    modelLists: object[];
  };
  expect(modelLists).toMatchObject([{ lastSuccessAt: expect.stringMatching(/^20.*Z$/) }]);
  expect(status.out).toMatch(/\nimage files +1 \(0\.0 MB\), 0 downloads, 0 rejected/);

  up.setRoutes({ "GET /v1/models": jsonResponse({ error: "no" }, 503) });
  const stale = await here.tollgate(["models", "refresh", "openai"]);
  expect(stale.code).toBe(1);
  expect(stale.out).toMatch(/openai +default +2 models +updated .*503/);
  const failing = JSON.parse((await here.tollgate(["status", "--json"])).out) as {
    modelLists: object[];
  };
  const aDate = expect.stringMatching(/^20.*Z$/);
  expect(failing.modelLists).toMatchObject([
    { lastSuccessAt: aDate, nextRefreshAt: aDate, lastError: { at: aDate } },
  ]);
  expect((await here.tollgate(["models", "refresh", "opnai"])).err).toContain(
    "Known providers: demo",
  );
  gateway.kill("SIGTERM");
  await gateway.exit;
  // The last list is still known.
  const after = await here.tollgate(["models", "--provider", "openai"]);
  expect(after.out).toMatch(/\nopenai\/gpt-image-2 /);
});

test("logs a model in use that retires soon, once per day", async () => {
  await using up = await startUpstream({
    "GET /v1/models": listed("gpt-5", "gpt-6-luna"),
    "POST /v1/*": jsonResponse({
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "x" } }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  });
  await using here = await createTestFolder({ "gateway.yaml": yaml(up.url) });
  const gateway = await here.serve();
  for (const model of ["openai/gpt-5", "fast", "openai/gpt-5", "openai/gpt-6-luna"]) {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "x" }] }),
    });
    expect(answer.status).toBe(200);
  }
  expect(await gateway.line(/retires soon/)).toMatchObject({
    level: "warn",
    model: "openai/gpt-5",
    retires: soon,
    days: 20,
  });
  expect(gateway.log.filter(({ msg }) => /retires/.test(String(msg)))).toHaveLength(1);
});
