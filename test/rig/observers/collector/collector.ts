// A real OpenTelemetry collector, built once from its Go modules in a temporary folder: a receiver
// and an exporter only.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { tmpdir } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Versions of the collector's builder and of each part. */
const VERSION = "0.162.0";
const FOLDER = join(tmpdir(), "tollgate-collector", VERSION);
const PROGRAM = join(FOLDER, "out/otelcol");
const BUILD_MS = 900_000;
const PATH = `${process.env["PATH"] ?? ""}${delimiter}/usr/local/go/bin`;

const module = (name: string) => `  - gomod: go.opentelemetry.io/collector/${name} v${VERSION}\n`;
const PARTS = `dist: { name: otelcol, output_path: ./out, module: example.org/otelcol }
receivers:
${module("receiver/otlpreceiver")}exporters:
${module("exporter/otlphttpexporter")}`;

/** Path of its program. Undefined: Go is not installed. */
export async function collector(): Promise<string | undefined> {
  if (existsSync(PROGRAM)) return PROGRAM;
  const env = { ...process.env, PATH, GOBIN: FOLDER };
  const options = { cwd: FOLDER, env, timeout: BUILD_MS, maxBuffer: 1 << 26 };
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER, { recursive: true });
  try {
    await run("go", ["version"], options);
  } catch {
    return undefined;
  }
  const builder = `go.opentelemetry.io/collector/cmd/builder@v${VERSION}`;
  await run("go", ["install", builder], options);
  await writeFile(join(FOLDER, "parts.yaml"), PARTS);
  await run(join(FOLDER, "builder"), ["--config", "parts.yaml"], options);
  return PROGRAM;
}
