// The `proxy` section: the HTTP proxy for calls to providers.
import type { ProxySettings } from "./network-config.ts";
import { problem } from "../problems.ts";
import { closedObject, list } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { isMapping } from "../source/config-tree.ts";

export const PROXY_SCHEMA = closedObject(
  {
    url: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description:
        "Proxy URL, http:// or https://, with user name and password if the proxy requires them",
    },
    bypass: list(
      {
        type: "string",
        pattern: "^[^\\s*]*\\*?[^\\s*]*$",
        minLength: 1,
        "x-expects": "a host such as llm.corp, with at most one *",
      },
      "Hosts that are reached without the proxy. Each may contain one *. The local " +
        "machine never uses the proxy",
      { default: [] },
    ),
  },
  {
    required: ["url"],
    description: "HTTP proxy for requests to providers. Default: direct connections",
  },
);

export function checkProxy(raw: unknown, report: ReportProblem): void {
  if (!isMapping(raw) || typeof raw["url"] !== "string") return;
  const url = URL.parse(raw["url"]);
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "")
    report(problem.badProxy(), "/proxy/url");
}

/** Returns the secrets in the proxy's URL: the password, as written and decoded. */
export function listProxySecrets(proxy: ProxySettings | undefined): readonly string[] {
  const url = proxy && URL.parse(proxy.url);
  if (!url || (url.username === "" && url.password === "")) return [];
  return [url.password, decodeURIComponent(url.password)].filter((text) => text.length > 3);
}
