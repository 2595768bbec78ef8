import { expect, test } from "vitest";
import { startInProcess } from "../kit/in-process.ts";
import { createTestFolder, MINIMAL_CONFIG } from "../kit/process/command-line.ts";

const yaml = MINIMAL_CONFIG.replace("[auth]", "[auth, zdr]").replace(
  "  demo: { use: demo }\n",
  `  demo: { use: demo }
  anthropic:
    use: anthropic
    credentials:
      - { name: plain, with: { api_key: "\${env:KEY:-sk-0123456789}" } }
      - { name: signed, with: { api_key: "\${env:KEY:-sk-0123456789}" }, zdr: { declared: true, note: "MSA 2026-03", until: 2099-03-01 } }
  openrouter: { use: openrouter, with: { api_key: "\${env:KEY:-sk-0123456789}" } }
  fireworks: { use: fireworks, with: { api_key: "\${env:KEY:-sk-0123456789}" } }
  elsewhere: { use: fireworks, with: { api_key: "\${env:KEY:-sk-0123456789}", base_url: "https://fireworks.example/v1" } }
models:
  mixed: [anthropic/claude-fable-5-1, demo/echo]
`,
);

test("policy explain: shows each provider, each level with its evidence, and whether it qualifies", async () => {
  await using here = await createTestFolder({ "gateway.yaml": yaml });
  const explain = (...words: string[]) => here.said(["policy", "explain", ...words]);

  const claude = await explain("anthropic/claude-opus-5", "--zdr");
  expect(claude.code).toBe(0);
  expect(claude.out).toMatch(/claude-opus-5 {2}credential plain, messages {2}would be rejected\n/);
  expect(claude.out).toMatch(/claude-opus-5 {2}credential signed, messages {2}would pass\n/);
  expect(claude.out).toContain("credential_not_declared, retention_days:30");
  expect(claude.out).toContain(
    "https://platform.claude.com/docs/en/manage-claude/api-and-data-retention",
  );
  expect(claude.out).toContain('zero retention, "MSA 2026-03", until 2099-03-01');

  // No declaration overrides that a model must store data, whatever its name ends with.
  for (const model of ["claude-fable-5", "claude-fable-5-1", "claude-fable-5-20260609"]) {
    const fable = await explain(`anthropic/${model}`, "--zdr");
    expect(fable.code, model).toBe(1);
    expect(fable.out).toContain("model_excluded");
    expect(fable.out).toMatch(
      /\n {2}model claude-fable-5\* +kept for 30 days, zero requires: unavailable\n/,
    );
  }

  const router = await explain("openrouter/some/model", "--zdr");
  expect(router.code).toBe(0);
  expect(router.out).toContain('"provider":{"zdr":true,"data_collection":"deny"}');
  expect((await explain("openrouter/some/model:online", "--zdr")).code).toBe(1);

  expect((await explain("fireworks/some/model", "--zdr")).code).toBe(0);
  expect((await explain("fireworks/some/model", "--strict")).code).toBe(1);
  const moved = await explain("elsewhere/some/model", "--zdr");
  expect(moved.code).toBe(1);
  expect(moved.out).toContain("not trusted");

  expect((await explain("mixed", "--strict")).code).toBe(0);
  expect((await explain("nobody/model", "--zdr")).code).toBe(1);
  expect((await here.tollgate(["policy", "forget", "x"])).err).toContain(
    'Unknown policy command "forget"',
  );
});

test("policy explain: the running gateway returns the same result", async () => {
  await using gateway = await startInProcess({ yaml });
  await using here = await createTestFolder({});
  const { code, out } = await here.tollgate([
    "policy",
    "explain",
    "demo/echo",
    "--strict",
    "--json",
    "--state-dir",
    gateway.stateDir,
  ]);
  expect(code).toBe(0);
  const { routes } = JSON.parse(out) as any;
  expect(routes[0]).toMatchObject({
    id: "demo/echo",
    satisfies: { required: true, strict: true },
    policy: { retention: { kind: "zero" }, basis: "published" },
  });
});
