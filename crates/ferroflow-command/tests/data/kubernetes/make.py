"""Writes the schemas of this folder from custom resource definitions.

    python3 make.py JOBSET_REPOSITORY TRAINER_REPOSITORY

The repositories are clones of github.com/kubernetes-sigs/jobset and github.com/kubeflow/trainer.
Descriptions and defaults are left out. Fields that a schema does not list are errors, as with
`kubectl apply --validate=strict`.
"""
import json
import pathlib
import subprocess
import sys

import yaml

FILES = {
    "jobset.json": (1, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    "cluster_training_runtime.json": (
        2,
        "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
    ),
    "train_job.json": (2, "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"),
}
DROPPED = ("description", "default", "format")


def strict(schema):
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: strict(one) for name, one in value.items()}
        elif key not in DROPPED and not key.startswith("x-kubernetes-"):
            kept[key] = strict(value)
    if "properties" in kept:
        kept["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        kept = {"type": ["integer", "string"]}
    return kept


def main():
    here = pathlib.Path(__file__).parent
    for name, (repository, path) in FILES.items():
        command = ["git", "-C", sys.argv[repository], "show", f"HEAD:{path}"]
        definition = yaml.safe_load(subprocess.check_output(command))
        schema = strict(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        # The API server knows what a definition leaves open.
        schema["properties"]["metadata"] = {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]*[a-z0-9]$"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
        names = definition["spec"]["names"]["kind"]
        version = definition["spec"]["group"] + "/" + definition["spec"]["versions"][0]["name"]
        schema["properties"]["kind"] = {"const": names}
        schema["properties"]["apiVersion"] = {"const": version}
        schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
        text = json.dumps(schema, separators=(",", ":"), sort_keys=True)
        (here / name).write_text(text + "\n")


main()
