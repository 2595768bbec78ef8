// The identity provider under `admin:`: errors are reported with their location, and its secret is
// never shown.
import { expect, it } from "vitest";
import { builtin } from "../../../plugins/index.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { listSecrets } from "../../../src/config/show-config.ts";
import { formatProblems } from "../../../src/config/problem-report.ts";
import { createLoader } from "../../../src/loader/plugin-loader.ts";

const load = createLoader({ builtin: builtin as never, hostModules: {} });
const of = (oidc: string) =>
  loadConfig("/nowhere/gateway.yaml", {
    env: { SECRET: "canary-oidc-9f3c" },
    loadPlugin: load,
    textOverride: `admin:\n  oidc: ${oidc}\nproviders: { demo: { use: demo } }\n`,
  });
const RIGHT = `{ issuer: "https://login.example", client_id: t, client_secret: "\${env:SECRET}", url: "https://g.example/", roles: { a: { role: owner }, b: { role: viewer, account: acme } } }`;

it("has the usual defaults, and its secret is marked", async () => {
  const { config, problems } = await of(RIGHT);
  expect(problems).toEqual([]);
  expect(config!.admin!.oidc).toEqual({
    issuer: "https://login.example",
    clientId: "t",
    clientSecret: "canary-oidc-9f3c",
    callbackUrl: "https://g.example/admin/v1/oidc/callback",
    scopes: ["openid", "profile", "email"],
    groupsClaim: "groups",
    nameClaim: "email",
    roles: [
      { group: "a", role: "owner", account: undefined },
      { group: "b", role: "viewer", account: "acme" },
    ],
  });
  expect(listSecrets(config!)).toContain("canary-oidc-9f3c");
});

it.each([
  [RIGHT.replace("https://login.example", "ftp://x"), "2:19", "admin.oidc.issuer: expected a URL"],
  [RIGHT.replace("role: owner", "role: ownr"), "2:", 'did you mean "owner"?'],
  [RIGHT.replace("client_id: t", "cleint_id: t"), "2:", 'did you mean "client_id"'],
  [RIGHT.replace(/, roles.*/, " }"), "2:", 'admin.oidc: missing key "roles"'],
  [RIGHT.replace("a: { role: owner }", "a: {}"), "2:", 'missing key "role"'],
])("%s", async (oidc, place, words) => {
  const { problems } = await of(oidc);
  const said = formatProblems(problems.filter(({ severity }) => severity === "error"));
  expect(said).toContain(`/nowhere/gateway.yaml:${place}`);
  expect(said).toContain(words);
});
