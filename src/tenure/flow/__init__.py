"""Chains, batches and workflows: values that are made of calls, and the graphs of nodes that they become."""

from tenure.flow.handle import CompositionHandle, Member
from tenure.flow.values import Batch, Chain, Composition
from tenure.flow.workflow import Workflow, WorkflowStep

__all__ = ["Batch", "Chain", "Composition", "CompositionHandle", "Member", "Workflow", "WorkflowStep"]
