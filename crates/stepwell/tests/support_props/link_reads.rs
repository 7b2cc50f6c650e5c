//! What an engine reads over its link: definitions, runs, tenants, and everything.

use std::sync::Arc;

use async_trait::async_trait;
use stepwell::core::id::{DefinitionId, Node, RunId, RunKey, Tenant, WorkerId};
use stepwell::core::run::{RunLog, TaskRow};
use stepwell::core::workflow::Definition;
use stepwell::ports::{
    AwaitedRun, Definitions, Inspection, Payload, Progress, ProgressReport, ReportedProgress,
    RunEnd, RunFilter, RunPage, RunSnapshot, RunView, Runs, StoreDump, StoredDefinition,
    TenantSettings, TenantView, Tenants,
};

use super::link::{Answer, Link};

#[async_trait]
impl Definitions for Link {
    async fn register(&self, definition: &Definition) -> Answer<Arc<StoredDefinition>> {
        self.reach("register")?.register(definition).await
    }

    async fn definition(&self, id: DefinitionId) -> Answer<Option<Arc<StoredDefinition>>> {
        self.reach("definition")?.definition(id).await
    }

    async fn latest(&self, workflow: &str) -> Answer<Option<Arc<StoredDefinition>>> {
        self.reach("latest")?.latest(workflow).await
    }
}

#[async_trait]
impl Progress for Link {
    async fn report_progress(&self, worker: &WorkerId, reports: &[ProgressReport]) -> Answer<()> {
        self.reach("report progress")?.report_progress(worker, reports).await
    }

    async fn progress(&self, run: RunKey) -> Answer<Vec<ReportedProgress>> {
        self.reach("progress")?.progress(run).await
    }
}

#[async_trait]
impl Runs for Link {
    async fn find(&self, tenant: &Tenant, id: &RunId) -> Answer<Option<RunView>> {
        self.reach("find")?.find(tenant, id).await
    }

    async fn run(&self, run: RunKey) -> Answer<Option<RunView>> {
        self.read_flow().await;
        self.reach("run")?.run(run).await
    }

    async fn tasks(&self, run: RunKey) -> Answer<Vec<TaskRow>> {
        self.reach("tasks")?.tasks(run).await
    }

    async fn input(&self, run: RunKey) -> Answer<Option<Payload>> {
        self.reach("input")?.input(run).await
    }

    async fn output(&self, run: RunKey, node: Node) -> Answer<Option<Payload>> {
        self.reach("output")?.output(run, node).await
    }

    async fn outputs(&self, run: RunKey) -> Answer<Vec<(Node, Payload)>> {
        self.reach("outputs")?.outputs(run).await
    }

    async fn log(&self, run: RunKey) -> Answer<Option<RunLog>> {
        self.reach("log")?.log(run).await
    }

    async fn snapshot(&self, run: RunKey) -> Answer<Option<RunSnapshot>> {
        self.reach("snapshot")?.snapshot(run).await
    }

    async fn ended(&self, runs: &[AwaitedRun]) -> Answer<Vec<(RunKey, RunEnd)>> {
        self.reach("ended")?.ended(runs).await
    }

    async fn list(
        &self,
        filter: &RunFilter,
        before: Option<RunKey>,
        rows_max: usize,
    ) -> Answer<RunPage> {
        self.reach("list")?.list(filter, before, rows_max).await
    }
}

#[async_trait]
impl Tenants for Link {
    async fn set_tenant(&self, tenant: &Tenant, settings: TenantSettings) -> Answer<()> {
        self.reach("set tenant")?.set_tenant(tenant, settings).await.map(|()| self.changed(()))
    }

    async fn set_default_tenant(&self, settings: TenantSettings) -> Answer<()> {
        self.reach("set tenants")?.set_default_tenant(settings).await.map(|()| self.changed(()))
    }

    async fn tenant(&self, tenant: &Tenant) -> Answer<Option<TenantView>> {
        self.reach("tenant")?.tenant(tenant).await
    }
}

#[async_trait]
impl Inspection for Link {
    async fn dump(&self) -> Answer<StoreDump> {
        self.reach("dump")?.dump().await
    }
}
