// Files that a release ships with the code: consistent versions, an entry in the changelog, and
// containers with matching files.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { entryOf, flaws, published } from "../../.build/release.ts";
import { createPluginLoader } from "../../src/cli/support/load-config.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { NIGHTLY } from "../kit/law-effort.ts";

const ROOT = join(import.meta.dirname, "../..");
const DEPLOY = join(ROOT, "deploy");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const version = (path: string) => (JSON.parse(read(path)) as { version: string }).version;
const chart = parse(read("deploy/chart/Chart.yaml")) as { version: string; appVersion: string };

describe("a release", () => {
  const changelog = read("CHANGELOG.md");
  const [own] = [version("package.json")] as const;
  const versions = published().map(version);

  it("has a changelog entry, and all packages have its version", () => {
    expect(entryOf(changelog, own)?.text).toBeTruthy();
    expect([...versions, chart.version, chart.appVersion]).toEqual(
      versions.map(() => own).concat(own, own),
    );
  });

  it("is rejected with an explanation if its entry is missing, undated, or next to another one", () => {
    const fine = { tag: "v1.2.3", versions: ["1.2.3", "1.2.3"], chart: "1.2.3" };
    const dated =
      "# Changelog\n\n## [1.2.3] - 2027-01-31\n\n- It is there.\n\n## [1.2.2] - 2027-01-01\n\n- Before.\n";
    expect(flaws({ ...fine, changelog: dated })).toEqual([]);
    expect(entryOf(dated, "1.2.3")?.text).toBe("- It is there.");
    expect(flaws({ ...fine, versions: ["1.2.4", "1.2.4"], changelog: dated })).toEqual([
      "The tag is v1.2.3, and package.json says 1.2.4.",
      "The chart is of 1.2.3, and package.json says 1.2.4.",
      "CHANGELOG.md has no entry for 1.2.4.",
    ]);
    expect(flaws({ ...fine, versions: ["1.2.3", "1.2.2"], changelog: dated })).toHaveLength(1);
    expect(flaws({ ...fine, changelog: dated.replace("2027-01-31", "Unreleased") })).toHaveLength(
      1,
    );
    expect(
      flaws({ ...fine, changelog: "## [1.2.3] - 2027-01-31\n\n## [1.2.2]\n\n- Before.\n" }),
    ).toHaveLength(1);
  });

  it("every relative link in the package points to a file of the package", () => {
    const files = NIGHTLY ? packed() : listed();
    const pages = files.filter((path) => path.endsWith(".md") && !path.startsWith("dist/"));
    expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/tutorials/first-plugin.md"]));
    const astray = pages.flatMap((page) =>
      Array.from(read(page).matchAll(/\]\((?!https?:|mailto:|#)([^)\s#]+)[^)]*\)/g), ([, link]) =>
        normalize(join(dirname(page), link!)).replace(/\/$/, ""),
      )
        .filter((to) => !files.some((path) => path === to || path.startsWith(`${to}/`)))
        .map((to) => `${page}: ${to}`),
    );
    expect(astray).toEqual([]);
  });

  /** The files that npm packs. It compresses all of them, which takes 7 s of processor time. */
  function packed(): string[] {
    const packing = ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"];
    const said = execFileSync("npm", packing, { cwd: ROOT, encoding: "utf8" });
    return [...said.matchAll(/"path": "([^"]+)"/g)].map(([, path]) => path!);
  }

  /** The files that package.json lists, without those of the build. */
  function listed(): string[] {
    const { files } = JSON.parse(read("package.json")) as { files: string[] };
    const hidden = files.filter((path) => path.startsWith("!")).map((path) => path.slice(1));
    return ["README.md", "LICENSE", ...files.filter((path) => !/^(!|dist$)/.test(path))]
      .flatMap((path) =>
        statSync(join(ROOT, path)).isDirectory()
          ? readdirSync(join(ROOT, path), { recursive: true, encoding: "utf8" }).map((name) =>
              join(path, name),
            )
          : path,
      )
      .filter((path) => !path.includes("node_modules/"))
      .filter((path) => !hidden.some((folder) => path.startsWith(folder)));
  }

  it("packages have a license, list their files, and contain nothing private", () => {
    expect(published()).toContain("plugins/stores/postgres/package.json");
    for (const path of published())
      expect(JSON.parse(read(path))).toMatchObject({
        license: "MIT",
        files: expect.arrayContaining(["dist"]),
        engines: { node: ">=24" },
        exports: expect.any(Object),
      });
  });
});

describe("containers", () => {
  const compose = parse(read("deploy/compose.yaml")) as {
    services: Record<
      string,
      {
        profiles?: string[];
        volumes?: string[];
        secrets?: string[];
        read_only?: boolean;
        cap_drop?: string[];
      }
    >;
    volumes: Record<string, null>;
    secrets: Record<string, { file: string }>;
  };

  it("every file that compose mounts exists, and every volume and secret is declared", () => {
    for (const { volumes = [], secrets = [] } of Object.values(compose.services)) {
      for (const volume of volumes) {
        const [from] = volume.split(":") as [string];
        if (from.startsWith("."))
          expect([from, existsSync(join(DEPLOY, from))]).toEqual([from, true]);
        // A path without a source is a volume of each container.
        else if (!from.startsWith("/")) expect(compose.volumes).toHaveProperty(from);
      }
      for (const secret of secrets) expect(compose.secrets).toHaveProperty(secret);
    }
    for (const name of ["tollgate", "fleet"]) {
      const { volumes, ...service } = compose.services[name]!;
      expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
      // Rows that the database has not received survive the gateway's container.
      expect(volumes!.map((volume) => volume.split(":").at(-1))).toContain("/var/lib/tollgate");
    }
    const profiles = Object.entries(compose.services).map(([name, { profiles: of }]) => [name, of]);
    expect(Object.fromEntries(profiles)).toEqual({
      tollgate: undefined,
      prometheus: ["metrics"],
      grafana: ["metrics"],
      postgres: ["fleet"],
      fleet: ["fleet"],
    });
  });

  it.each(["gateway.yaml", "compose/fleet.yaml"])(
    "deploy/%s passes check with its secrets there",
    async (name) => {
      const credentials = mkdtempSync(join(tmpdir(), "tollgate-credentials-"));
      for (const secret of Object.keys(compose.secrets))
        writeFileSync(join(credentials, secret), "0".repeat(64));
      const file = join(DEPLOY, name);
      const { problems } = await loadConfig(file, {
        env: { CREDENTIALS_DIRECTORY: credentials },
        loadPlugin: createPluginLoader(),
      });
      expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
      rmSync(credentials, { recursive: true });
    },
  );

  it("Prometheus and Grafana use the same files as the other deployments", () => {
    type Scraping = { scrape_configs: { job_name: string }[]; rule_files: string[] };
    const own = parse(read("deploy/prometheus/prometheus.yaml")) as Scraping;
    const composed = parse(read("deploy/compose/prometheus.yaml")) as Scraping;
    expect(composed.rule_files).toEqual(own.rule_files);
    expect(composed.scrape_configs.map(({ job_name }) => job_name)).toEqual(
      own.scrape_configs.map(({ job_name }) => job_name),
    );
    // A chart can only contain files of its own folder. UPDATE_README=1 copies them.
    const files = [
      ["prometheus/rules.yaml", "rules.yaml"],
      ...readdirSync(join(DEPLOY, "grafana")).map((name) => [`grafana/${name}`, name]),
    ] as [string, string][];
    expect(readdirSync(join(DEPLOY, "chart/files")).toSorted()).toEqual(
      files.map(([, to]) => to).toSorted(),
    );
    for (const [from, to] of files) {
      if (process.env["UPDATE_README"])
        writeFileSync(join(DEPLOY, "chart/files", to), read(`deploy/${from}`));
      expect(read(`deploy/chart/files/${to}`)).toBe(read(`deploy/${from}`));
    }
  });

  it("the image runs as an unprivileged user, has a health check, and contains no key", () => {
    const last = read("deploy/Dockerfile")
      .split(/^FROM /m)
      .at(-1)!;
    expect(last).toMatch(/^USER 65532:65532$/m);
    expect(last).toMatch(/HEALTHCHECK .*\\\n +CMD \[.*"status", "--quiet"/);
    expect(last).toMatch(/^STOPSIGNAL SIGTERM$/m);
    expect(last).not.toMatch(/api_?key|secret|token/i);
    expect(last).not.toMatch(/^(RUN|ADD) /m);
  });
});
