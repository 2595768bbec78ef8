// The package's own tests, as its author runs them.
await import("../../examples/packages/middleware-remote-guard/test/remote-guard.test.ts");
